/* Queues of the plugin's: a piece of work, what it waits for, and what becomes of its memory when it is over. */
#include "pjrt.h"

/* What whoever waits does himself. Arrays are asked whether they are ready by this way, too, so that it may not be
 * long: at this length what is saved is a hundredth. */
enum { QUEUE_SHORT = 2000000 };

static _Thread_local bool queue_at_work;

struct pjrt_piece {
  pjrt_job job;
  pjrt_queue *queue;
  rt_event *over; /* of the queue's; NULL: it is not enqueued */
};

bool pjrt_on_queue(void) {
  return queue_at_work;
}

bool pjrt_set_on_queue(bool on) {
  bool before = queue_at_work;
  queue_at_work = on;
  return before;
}

int pjrt_queue_init(pjrt_queue *q, rt_device *d, xlac_error *err) {
  TRY(rt_queue_create(d, &q->queue, err));
  pthread_mutex_init(&q->lock, NULL);
  return 0;
}

void pjrt_queue_free(pjrt_queue *q) {
  rt_queue_destroy(q->queue);
  pthread_mutex_destroy(&q->lock);
}

static int queue_run(void *ctx, xlac_error *err) {
  const pjrt_piece *p = ctx;
  assert(!queue_at_work);
  queue_at_work = true;
  int status = p->job.run(p->job.ctx, err);
  queue_at_work = false;
  return status;
}

static void queue_over(void *ctx, const xlac_error *why) {
  pjrt_piece *p = ctx;
  /* first: the client, and the queue with it, may be gone with what is dropped */
  atomic_fetch_sub_explicit(&p->queue->expected, p->job.expected, memory_order_relaxed);
  p->job.drop(p->job.ctx, why);
  pjrt_free(p);
}

pjrt_piece *pjrt_piece_make(const pjrt_job *job) {
  assert(job->run && job->drop);
  pjrt_piece *p = pjrt_alloc(sizeof *p);
  if (p) p->job = *job;
  return p;
}

int pjrt_piece_push(pjrt_piece *p, pjrt_queue *q, size_t n, rt_event *const *waits, xlac_error *err) {
  assert(!p->over);
  for (size_t i = 0; i < n; i++)
    if (waits[i] && rt_event_poll(waits[i], NULL) != RT_EVENT_READY) TRY(rt_queue_wait_for(q->queue, waits[i], err));
  p->queue = q;
  atomic_fetch_add_explicit(&q->expected, p->job.expected, memory_order_relaxed);
  int status = rt_queue_host_call(q->queue, queue_run, p, &p->over, err);
  if (status) atomic_fetch_sub_explicit(&q->expected, p->job.expected, memory_order_relaxed);
  return status;
}

void pjrt_help(const pjrt_queue *q, rt_event *until) {
  if (!q || !until || queue_at_work || rt_event_poll(until, NULL) != RT_EVENT_PENDING) return;
  if (atomic_load_explicit(&q->expected, memory_order_relaxed) <= QUEUE_SHORT) rt_queue_help(q->queue, until);
}

void pjrt_piece_watch(pjrt_piece *p) {
  xlac_error lost;
  rt_event *over = p->over;
  /* For want of memory the job is lost with the rest. */
  int status = over ? rt_event_on_ready(over, queue_over, p, &lost) : 0;
  if (!over) pjrt_free(p);
  (void)status;
  rt_event_release(over);
}

int pjrt_enqueue(pjrt_queue *q, const pjrt_job *job, rt_event *wait, xlac_error *err) {
  pjrt_piece *p = pjrt_piece_make(job);
  if (!p) return base_oom(err, "a piece of work");
  pthread_mutex_lock(&q->lock);
  int status = pjrt_piece_push(p, q, 1, &wait, err);
  pthread_mutex_unlock(&q->lock);
  pjrt_piece_watch(p);
  return status;
}
