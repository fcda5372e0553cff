# Submits: client.rb submit COUNT seq | submit COUNT all BATCH | latency COUNT EVERY_MS
require_relative "job"

Sidekiq.configure_client { |config| config.redis = { url: ENV.fetch("REDIS_URL") } }

def submit(count, way, batch)
  case way
  when "seq"
    count.times { |number| NoopJob.perform_async(Harness.argument(number)) }
  when "all"
    (0...count).each_slice(batch) do |numbers|
      arguments = numbers.map { |number| [Harness.argument(number)] }
      NoopJob.perform_bulk(arguments, batch_size: batch)
    end
  else
    abort "sidekiq submits seq or all, not #{way}"
  end
end

def submit_each(count, every_ms)
  begun = Harness.now_ns
  count.times do |number|
    wait_ns = begun + number * every_ms * 1_000_000 - Harness.now_ns
    sleep(wait_ns / 1e9) if wait_ns > 0
    NoopJob.perform_async(Harness.argument(number, Harness.now_ns))
  end
end

Sidekiq.redis(&:ping)
Harness.ready(Sidekiq::VERSION)
Harness.end_with_input
begun = Harness.now_ns
case ARGV
in ["submit", count, way, *batch] then submit(count.to_i, way, batch.first.to_i)
in ["latency", count, every_ms] then submit_each(count.to_i, every_ms.to_i)
end
Harness.say("done #{Harness.now_ns - begun}")
sleep
