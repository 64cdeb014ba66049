"""The parts of a running worker, which :class:`worker.GenerationWorker` composes."""
