/* Events: the client's face of runtime/event.h. What is over already has one constant event, which nobody owns. */
#include "pjrt.h"

struct PJRT_Event {
  rt_event *event; /* NULL: ready */
  bool settable;   /* by Event_Set */
};

static const PJRT_Event event_ready = {NULL, false};

PJRT_Event *pjrt_event_make(rt_event *e) {
  if (!e || rt_event_poll(e, NULL) == RT_EVENT_READY) return (PJRT_Event *)(uintptr_t)&event_ready;
  PJRT_Event *out = pjrt_alloc(sizeof *out);
  if (out) out->event = rt_event_retain(e);
  return out;
}

/* May come from inside the event's own callback. */
PJRT_Error *pjrt_event_destroy(PJRT_Event_Destroy_Args *args) {
  PJRT_Event *e = args->event;
  if (!e || e == &event_ready) return NULL;
  assert(e->event && "what is over has the constant event");
  rt_event_release(e->event);
  pjrt_free(e);
  return NULL;
}

PJRT_Error *pjrt_event_is_ready(PJRT_Event_IsReady_Args *args) {
  const PJRT_Event *e = args->event;
  args->is_ready = !e->event || rt_event_poll(e->event, NULL) != RT_EVENT_PENDING;
  return NULL;
}

PJRT_Error *pjrt_event_error(PJRT_Event_Error_Args *args) {
  xlac_error why;
  const PJRT_Event *e = args->event;
  return e->event && rt_event_poll(e->event, &why) == RT_EVENT_FAILED ? pjrt_error_of(&why) : NULL;
}

PJRT_Error *pjrt_event_await(PJRT_Event_Await_Args *args) {
  xlac_error why;
  const PJRT_Event *e = args->event;
  return e->event && rt_event_wait(e->event, NULL, NULL, &why) != 0 ? pjrt_error_of(&why) : NULL;
}

typedef struct event_call {
  PJRT_Event_OnReadyCallback fn;
  void *user_arg;
} event_call;

static void event_fire(void *ctx, const xlac_error *why) {
  event_call call = *(event_call *)ctx;
  pjrt_free(ctx);
  call.fn(why ? pjrt_error_of(why) : NULL, call.user_arg);
}

PJRT_Error *pjrt_event_on_ready(PJRT_Event_OnReady_Args *args) {
  xlac_error err;
  const PJRT_Event *e = args->event;
  if (!e->event) {
    args->callback(NULL, args->user_arg);
    return NULL;
  }
  event_call *call = pjrt_alloc(sizeof *call);
  if (!call) return pjrt_out_of_memory("a callback of an event");
  *call = (event_call){args->callback, args->user_arg};
  if (rt_event_on_ready(e->event, event_fire, call, &err) == 0) return NULL;
  pjrt_free(call);
  return pjrt_error_of(&err);
}

/* An event that the client sets. */
PJRT_Error *pjrt_event_create(PJRT_Event_Create_Args *args) {
  xlac_error err;
  PJRT_Event *e = pjrt_alloc(sizeof *e);
  if (!e) return pjrt_out_of_memory("an event");
  e->settable = true;
  if (rt_event_create(&e->event, base_alloc_libc, &err) == 0) {
    args->event = e;
    return NULL;
  }
  pjrt_free(e);
  return pjrt_error_of(&err);
}

PJRT_Error *pjrt_event_set(PJRT_Event_Set_Args *args) {
  xlac_error why;
  PJRT_Event *e = args->event;
  if (!e->settable || rt_event_poll(e->event, NULL) != RT_EVENT_PENDING)
    return pjrt_fail(PJRT_FAILED_PRECONDITION, "the event was set before, or is not one that the caller sets");
  if (args->error_code <= PJRT_OK || args->error_code >= PJRT_CODE_END) {
    rt_event_set(e->event, NULL);
    return NULL;
  }
  pjrt_error_to(&why, args->error_code, args->error_message, args->error_message_size);
  rt_event_set(e->event, &why);
  return NULL;
}
