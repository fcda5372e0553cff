# The code that `sidekiq -r` loads: the job, and a tally of its executions.
require_relative "job"

module Tally
  REPORT_EVERY_S = 0.01

  @lock = Mutex.new
  @seen = "\0".b * ENV.fetch("COUNT").to_i
  @waits = []
  @count = @first = @last = 0

  def self.ran(argument)
    now = Harness.now_ns
    number, sent_ns = argument["number"], argument["sent_ns"]
    @lock.synchronize do
      @seen.setbyte(number, @seen.getbyte(number) + 1)
      @waits << now - sent_ns if sent_ns > 0
      @first = now if @count == 0
      @last = now
      @count += 1
    end
  end

  def self.report
    told = 0
    loop do
      sleep REPORT_EVERY_S
      next if @count == told
      told, first, last = @lock.synchronize { [@count, @first, @last] }
      Harness.say("ran #{told} #{first} #{last}")
    end
  end

  def self.answer
    Harness.say("waited #{@waits.join(" ")}")
    Harness.say("seen #{@seen.unpack1("H*")}")
  end
end

Sidekiq.configure_server { |config| config.redis = { url: ENV.fetch("REDIS_URL") } }
Sidekiq.logger.level = Logger::WARN
Harness.ready(Sidekiq::VERSION)
Thread.new { Tally.report }
Harness.end_with_input { Tally.answer }
