//! What tests share for as long as one of them uses it, and a while longer.
//!
//! In: how to make it. Out: [`Lent`], which dereferences to it. A control plane that nobody uses takes 35 thousandths of a processor, and 67 with a
//! process of the product (over four minutes of a run of all suites): kept to the end of a run, as what is in a static, it costs as much as its
//! start every two to four minutes.
//! Promises: there is one at a time; it ends once nobody has used it for half of [`patience`]; who asks after that gets another one, as the
//! first was.

use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Result;
use tokio::sync::Mutex;

use crate::background;
use crate::patience::patience;

/// Where something that is shared is known from; a static.
pub struct Kept<T> {
    known: Mutex<Weak<T>>,
    /// How long nobody has to use it until it ends.
    linger: fn() -> Duration,
}

impl<T: Send + Sync + 'static> Kept<T> {
    /// Nothing is there yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { known: Mutex::const_new(Weak::new()), linger: half_of_patience }
    }

    /// Lends what is there, or else what `make` makes; others wait meanwhile.
    ///
    /// # Errors
    /// Those of `make`; then nothing is there, and the next one tries.
    pub async fn lend(&self, make: impl AsyncFnOnce() -> Result<T>) -> Result<Lent<T>> {
        let mut known = self.known.lock().await;
        let kept = match known.upgrade() {
            Some(kept) => kept,
            None => Arc::new(Box::pin(make()).await?),
        };
        *known = Arc::downgrade(&kept);
        Ok(Lent { kept, linger: self.linger })
    }
}

impl<T: Send + Sync + 'static> Default for Kept<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Longer than between two tests of one suite, of which others run in between.
fn half_of_patience() -> Duration {
    patience() / 2
}

/// What is kept, for one who uses it.
pub struct Lent<T: Send + Sync + 'static> {
    kept: Arc<T>,
    linger: fn() -> Duration,
}

impl<T: Send + Sync + 'static> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.kept
    }
}

impl<T: Send + Sync + 'static> Drop for Lent<T> {
    fn drop(&mut self) {
        let (kept, linger) = (Arc::clone(&self.kept), (self.linger)());
        // The runtime of the test that used it ends with the test.
        background::runtime().spawn(async move {
            tokio::time::sleep(linger).await;
            // Its processes are killed and waited for.
            tokio::task::spawn_blocking(move || drop(kept));
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;

    /// One of those that are counted.
    struct One(Arc<AtomicUsize>);

    impl One {
        fn new(there: &Arc<AtomicUsize>) -> Self {
            there.fetch_add(1, Ordering::SeqCst);
            Self(Arc::clone(there))
        }
    }

    impl Drop for One {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn there_is_one_while_somebody_uses_it_and_then_none_and_then_another() {
        let there = Arc::<AtomicUsize>::default();
        let kept: Kept<One> = Kept { known: Mutex::const_new(Weak::new()), linger: || Duration::ZERO };
        let failed = kept.lend(async || Err(anyhow::anyhow!("it cannot be made"))).await;
        assert!(failed.is_err(), "what cannot be made is not lent");
        let first = kept.lend(async || Ok(One::new(&there))).await.unwrap();
        let second = kept.lend(async || Ok(One::new(&there))).await.unwrap();
        drop(first);
        let third = kept.lend(async || Ok(One::new(&there))).await.unwrap();
        assert!(Arc::ptr_eq(&second.kept, &third.kept), "while somebody uses it, it is the same");
        assert_eq!(there.load(Ordering::SeqCst), 1);
        drop((second, third));
        let begun = Instant::now();
        while there.load(Ordering::SeqCst) > 0 {
            assert!(begun.elapsed() < patience(), "nobody uses it, and it is there");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let _another = kept.lend(async || Ok(One::new(&there))).await.unwrap();
        assert_eq!(there.load(Ordering::SeqCst), 1);
    }
}
