# The task, as a job of Sidekiq.
require "sidekiq"
require_relative "harness"

class NoopJob
  include Sidekiq::Worker
  sidekiq_options queue: "default"

  def perform(argument) = Tally.ran(argument)
end
