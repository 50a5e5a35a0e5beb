//! Kernels on the threads of a rayon pool.
//!
//! The caller takes tasks itself, and waits only for tasks that a thread has begun: it never steals other work of the pool
//! meanwhile, which could call the library again under one of its locks, and never waits for a pool that is busy.
use crate::sys;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// What the library's user pointer points to.
pub(crate) struct Pool {
    pool: Arc<rayon::ThreadPool>,
}

impl Pool {
    pub fn new(pool: Arc<rayon::ThreadPool>) -> Pool {
        Pool { pool }
    }

    pub fn fill(&self, options: &mut sys::spk_context_options) {
        options.parallel_for = Some(parallel_for);
        options.parallel_user = ptr::from_ref(self).cast_mut().cast();
        if options.threads == 0 {
            options.threads = i32::try_from(self.pool.current_num_threads()).unwrap_or(i32::MAX);
        }
    }
}

/// The tasks of one call. `body` is called only for tasks below `tasks`, all of which the caller waits for; a thread that comes
/// later finds none.
struct Call {
    body: unsafe extern "C" fn(*mut c_void, i64),
    arg: *mut c_void,
    tasks: i64,
    next: AtomicI64,
    done: Mutex<i64>,
    all_done: Condvar,
}

// SAFETY: the library lets the body be called with arg on any threads.
unsafe impl Send for Call {}
// SAFETY: likewise.
unsafe impl Sync for Call {}

impl Call {
    fn work(&self) {
        let mut mine = 0;
        loop {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task >= self.tasks {
                break;
            }
            // SAFETY: a task of the call, once; the caller waits for it, so that arg is valid.
            unsafe { (self.body)(self.arg, task) };
            mine += 1;
        }
        if mine > 0 {
            let mut done = self.done.lock().expect("nothing panics under it");
            *done += mine;
            if *done == self.tasks {
                self.all_done.notify_one();
            }
        }
    }

    fn wait(&self) {
        let done = self.done.lock().expect("nothing panics under it");
        drop(self.all_done.wait_while(done, |done| *done < self.tasks).expect("nothing panics under it"));
    }
}

unsafe extern "C" fn parallel_for(user: *mut c_void, tasks: i64, body: sys::spk_parallel_body, arg: *mut c_void) {
    let Some(body) = body else { return };
    // SAFETY: the box in the context's callbacks, which outlives it.
    let pool = unsafe { &*user.cast::<Pool>() };
    if tasks <= 0 {
        return;
    }
    let (next, done, all_done) = (AtomicI64::new(0), Mutex::new(0), Condvar::new());
    let call = Arc::new(Call { body, arg, tasks, next, done, all_done });
    let helpers = (tasks - 1).min(i64::try_from(pool.pool.current_num_threads()).unwrap_or(1));
    for _ in 0..helpers {
        let call = Arc::clone(&call);
        pool.pool.spawn(move || call.work());
    }
    call.work();
    call.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn count(arg: *mut c_void, task: i64) {
        // SAFETY: the test's array of counters.
        let counters = unsafe { &*arg.cast::<[AtomicI64; 100]>() };
        counters[usize::try_from(task).unwrap()].fetch_add(1, Ordering::Relaxed);
    }

    fn every_task_once(pool: &Pool) {
        let counters = [const { AtomicI64::new(0) }; 100];
        let arg = ptr::from_ref(&counters).cast_mut().cast();
        // SAFETY: pool and counters live until the call returns.
        unsafe { parallel_for(ptr::from_ref(pool).cast_mut().cast(), 100, Some(count), arg) };
        assert!(counters.iter().all(|counter| counter.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn every_task_runs_once_from_outside_and_from_within_a_busy_pool() {
        let threads = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap());
        let pool = Pool::new(threads.clone());
        for _ in 0..200 {
            every_task_once(&pool);
        }
        threads.install(|| rayon::join(|| every_task_once(&pool), || every_task_once(&pool)));
        let single = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
        let pool = Pool::new(single.clone());
        single.install(|| every_task_once(&pool));
    }
}
