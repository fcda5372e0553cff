# The lines that a runner exchanges with the harness (see ../README.md), and the argument.
module Harness
  TEXT = "x" * 161

  def self.now_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  def self.argument(number, sent_ns = 0)
    { "number" => number, "sent_ns" => sent_ns, "text" => TEXT }
  end

  def self.say(words)
    STDOUT.write("bench #{words}\n")
    STDOUT.flush
  end

  # Reports that the runner has started, and waits until the harness has read the clocks.
  def self.ready(version)
    say("ready #{version}")
    exit!(1) unless STDIN.gets == "go\n"
  end

  # Ends the process, after the block, when the harness closes our input or dies.
  def self.end_with_input
    Thread.new do
      STDIN.gets
      yield if block_given?
    ensure
      exit!(0)
    end
  end
end
