"""A loader with or without worker processes, which are forked."""

import multiprocessing

from torch.autograd.profiler import record_function


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self.loader = loader
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= len(self.loader):
            raise StopIteration
        self.at += 1
        with record_function(f"enumerate(DataLoader)#{type(self).__name__}.__next__"):
            return self._next_data(self.at - 1)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def _next_data(self, number):
        return self.loader.batch(number)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        context = multiprocessing.get_context("fork")
        self.queues = [context.Queue(2) for _ in range(loader.num_workers)]
        self.workers = [context.Process(target=self.work, args=(number,), daemon=True)
                        for number in range(loader.num_workers)]
        for worker in self.workers:
            worker.start()

    def work(self, first):
        for number in range(first, len(self.loader), self.loader.num_workers):
            self.queues[first].put(self.loader.batch(number))

    def _next_data(self, number):
        return self.queues[number % self.loader.num_workers].get()


class DataLoader:
    def __init__(self, dataset, batch_size=1, num_workers=0):
        self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers

    def __len__(self):
        return len(self.dataset) // self.batch_size

    def batch(self, number):
        return [self.dataset[number * self.batch_size + i] for i in range(self.batch_size)]

    def __iter__(self):
        return (_MultiProcessingDataLoaderIter if self.num_workers else _SingleProcessDataLoaderIter)(self)
