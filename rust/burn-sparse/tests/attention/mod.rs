//! Attention against Burn's own, with its gradients.
use super::common::{assert_near, numbers, setup};
use burn::backend::Dispatch;
use burn::tensor::module::attention as burns;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use burn_sparse::sparsek::Diagonal;
use burn_sparse::{Attention, AttentionOps, BsrPattern, Effort, TuneConfig, attention, attention_lse};

const TOP: Diagonal = Diagonal::TopLeft;
const BOTTOM: Diagonal = Diagonal::BottomRight;

/// Which pairs are hidden: item, head, query, key.
type Hidden<'a> = &'a dyn Fn(usize, usize, usize, usize) -> bool;

#[derive(Clone, Copy)]
struct Case {
    batch: usize,
    heads: usize,
    heads_kv: usize,
    queries: usize,
    keys: usize,
    depth: usize,
    depth_v: usize,
    dtype: DType,
    tolerance: f32,
    /// Rows of all heads side by side, as linear layers make them.
    by_rows: bool,
}

const PLAIN: Case = Case {
    batch: 2,
    heads: 4,
    heads_kv: 2,
    queries: 9,
    keys: 13,
    depth: 8,
    depth_v: 5,
    dtype: DType::F32,
    tolerance: 1e-4,
    by_rows: false,
};

fn problem() -> Attention {
    setup();
    Attention::new().tuning(TuneConfig::new().with_effort(Effort::Estimate))
}

impl Case {
    fn input(&self, heads: usize, rows: usize, depth: usize, device: &Device) -> Tensor<4> {
        let shape = if self.by_rows { [self.batch, rows, heads, depth] } else { [self.batch, heads, rows, depth] };
        (numbers(shape, device) * (1.0 + heads as f32 / 4.0)).cast(self.dtype).require_grad()
    }

    fn place(&self, input: &Tensor<4>) -> Tensor<4> {
        if self.by_rows { input.clone().swap_dims(1, 2) } else { input.clone() }
    }

    /// The result, LSE and all gradients of a weighted sum of both, beside those of Burn's attention and of its scores.
    fn check(&self, attention: &Attention, hidden: Option<Hidden>, device: &Device) {
        let burn_says = AttentionModuleOptions { scale: attention.scale, softcap: attention.softcap, is_causal: false };
        self.check_beside(attention, hidden, burn_says, device);
    }

    fn check_beside(
        &self,
        attention: &Attention,
        hidden: Option<Hidden>,
        options: AttentionModuleOptions,
        device: &Device,
    ) {
        let sizes = [self.batch, self.heads, self.queries, self.keys];
        let mask = hidden.map(|hidden| {
            let [_, heads, queries, keys] = sizes;
            let pair =
                |i: usize| hidden(i / keys / queries / heads, i / keys / queries % heads, i / keys % queries, i % keys);
            let pairs: Vec<bool> = (0..sizes.iter().product()).map(pair).collect();
            Tensor::<4, Bool>::from_data(TensorData::new(pairs, sizes), device)
        });
        let run = |own: bool| {
            let q = self.input(self.heads, self.queries, self.depth, device);
            let k = self.input(self.heads_kv, self.keys, self.depth, device);
            let v = self.input(self.heads_kv, self.keys, self.depth_v, device);
            let [of_q, of_k, of_v] = [&q, &k, &v].map(|input| self.place(input));
            let (o, lse) = match own {
                true => attention_lse(of_q, of_k, of_v, attention),
                false => {
                    let group = self.heads / self.heads_kv;
                    let repeated = |input: Tensor<4>| {
                        let [batch, heads, rows, depth] = input.dims();
                        let each = input.reshape([batch, heads, 1, rows * depth]).repeat_dim(2, group);
                        each.reshape([batch, heads * group, rows, depth])
                    };
                    let (of_k, of_v) = (repeated(of_k), repeated(of_v));
                    let lse = scores(of_q.clone(), of_k.clone(), mask.clone(), &options);
                    (burns(of_q, of_k, of_v, mask.clone(), None, options), lse)
                }
            };
            let weights = numbers(o.dims(), device).cast(self.dtype);
            let loss = (o.clone() * weights).sum().cast(DType::F32)
                + (lse.clone().cast(DType::F32) * numbers(lse.dims(), device)).sum();
            let grads = loss.backward();
            let [q, k, v] = [q, k, v].map(|input| input.grad(&grads).unwrap());
            (o.detach(), lse.detach(), [q, k, v])
        };
        let ((o, lse, grads), (exact_o, exact_lse, exact)) = (run(true), run(false));
        assert_eq!((o.dtype(), lse.dtype() == DType::F64), (self.dtype, self.dtype == DType::F64));
        assert_near(o, exact_o, self.tolerance);
        assert_near(lse, exact_lse, self.tolerance);
        for (grad, exact) in grads.into_iter().zip(exact) {
            assert_near(grad, exact, self.tolerance);
        }
    }
}

/// The logarithm of the sum of the exponentials of the scores.
fn scores(q: Tensor<4>, k: Tensor<4>, mask: Option<Tensor<4, Bool>>, options: &AttentionModuleOptions) -> Tensor<3> {
    let scale = options.scale.unwrap_or(1.0 / (q.dims()[3] as f64).sqrt());
    let ([batch, heads, queries, _], keys) = (q.dims(), k.dims()[2]);
    let mut scores = q.matmul(k.transpose()) * scale;
    if let Some(cap) = options.softcap {
        scores = (scores / cap).tanh() * cap;
    }
    let mut terms = scores.exp();
    if let Some(mask) = mask {
        terms = terms.mask_fill(mask, 0.0);
    }
    if options.is_causal {
        let shown = Tensor::<2>::ones([queries, keys], &terms.device()).tril(keys as i64 - queries as i64);
        let shown = shown.cast(terms.dtype());
        terms = terms * shown.reshape([1, 1, queries, keys]);
    }
    terms.sum_dim(3).log().reshape([batch, heads, queries])
}

fn devices() -> Vec<Device> {
    vec![
        Device::flex().autodiff(),
        Device::flex().autodiff().gradient_checkpointing(),
        #[cfg(feature = "ndarray")]
        #[allow(deprecated)]
        // Burn means to drop it: while it is there, it stands for those without kernels of ours
        Device::ndarray().autodiff(),
    ]
}

#[test]
fn bands() {
    // 13 keys for 9 queries; each sees one at least.
    let below = |diagonal| if diagonal == BOTTOM { 4 } else { 0 };
    for device in devices() {
        for by_rows in [false, true] {
            let case = Case { by_rows, ..PLAIN };
            case.check(&problem(), None, &device);
            case.check(&problem().scale(-0.7).softcap(0.6), None, &device);
            for diagonal in [TOP, BOTTOM] {
                let distance = |query: usize, key: usize| key as i64 - query as i64 - below(diagonal);
                let causal = |_: usize, _: usize, query: usize, key: usize| distance(query, key) > 0;
                case.check(&problem().causal(diagonal), Some(&causal), &device);
                let window = |_: usize, _: usize, query: usize, key: usize| {
                    distance(query, key) <= -4 || distance(query, key) >= 3
                };
                case.check(&problem().window(4, 3, diagonal), Some(&window), &device);
                let sinks = |_: usize, _: usize, query: usize, key: usize| {
                    distance(query, key) > 0 || (distance(query, key) <= -4 && key >= 2)
                };
                let problem = problem().causal(diagonal).window(4, 0, diagonal).sinks(2).softcap(0.6);
                case.check(&problem, Some(&sinks), &device);
            }
        }
        // Burn's causality is that of the last key beside the last query.
        let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
        PLAIN.check_beside(&problem().causal(BOTTOM), None, options, &device);
    }
}

#[test]
fn element_types() {
    for (dtype, tolerance) in [(DType::F64, 1e-6), (DType::F16, 3e-2), (DType::BF16, 2e-1)] {
        for (heads, heads_kv, queries, keys) in [(1, 1, 1, 1), (2, 1, 33, 20), (3, 3, 7, 64)] {
            let case = Case { heads, heads_kv, queries, keys, dtype, tolerance, ..PLAIN };
            case.check(&problem(), None, &Device::flex().autodiff());
        }
    }
}

/// Lists of blocks of 4 x 5, the first column of which is always there; and whether one is: list, block row, block column.
fn lists(case: &Case, count: usize) -> (BsrPattern, impl Fn(usize, usize, usize) -> bool + use<>) {
    setup();
    let stored =
        |list: usize, row: usize, column: usize| column == 0 || (list * 31 + row * 17 + column * 7).is_multiple_of(3);
    let (down, across) = (case.queries.div_ceil(4), case.keys.div_ceil(5));
    let (mut offsets, mut columns) = (vec![0], Vec::new());
    for row in 0..count * down {
        columns
            .extend((0..across).filter(|&column| stored(row / down, row % down, column)).map(|column| column as i64));
        offsets.push(columns.len() as i64);
    }
    let rows = if count == 1 { case.queries } else { count * down * 4 };
    (BsrPattern::new([rows, case.keys], [4, 5], &offsets, &columns).unwrap(), stored)
}

#[test]
fn masks_of_blocks() {
    for device in devices() {
        for (of_heads, of_items) in [(1, 1), (2, 1), (4, 1), (1, 2), (4, 2)] {
            let (pattern, stored) = lists(&PLAIN, of_heads * of_items);
            let hidden = |item: usize, head: usize, query: usize, key: usize| {
                let list = if of_items > 1 { item * of_heads } else { 0 } + head / (4 / of_heads);
                !stored(list, query / 4, key / 5) || key as i64 > query as i64 + 4
            };
            let problem = problem().causal(BOTTOM).mask_lists(&pattern, of_heads, of_items);
            PLAIN.check(&problem, Some(&hidden), &device);
        }
    }
}

#[test]
fn inputs_of_any_strides() {
    let device = Device::flex().autodiff();
    let whole = || numbers([2, 4, 9, 8], &device).require_grad();
    let turned: [fn(Tensor<4>) -> Tensor<4>; 5] = [
        |x| x.swap_dims(2, 3).swap_dims(0, 1).reshape([2, 4, 9, 8]),
        |x| x.flip([2]),
        |x| x.slice([0..1, 0..4, 0..9, 0..8]).expand([2, 4, 9, 8]),
        |x| x.slice([0..2, 0..1, 0..9, 0..8]).expand([2, 4, 9, 8]),
        |x| x.slice([0..2, 0..4, 0..9, 1..8]),
    ];
    for turn in turned {
        let run = |own: bool| {
            let (q, k, v) = (whole(), whole(), whole());
            let [of_q, of_k, of_v] = [&q, &k, &v].map(|input| turn(input.clone()));
            let o = match own {
                true => attention(of_q, of_k, of_v, &problem()),
                false => burns(of_q, of_k, of_v, None, None, AttentionModuleOptions::default()),
            };
            // The gradient comes as a view, and from a sum as one number.
            let loss = (o.clone().swap_dims(1, 3) * numbers([2, o.dims()[3], 9, 4], &device)).sum() + o.clone().sum();
            let grads = loss.backward();
            (o.detach(), [q, k, v].map(|input| input.grad(&grads).unwrap()))
        };
        let ((o, grads), (exact_o, exact)) = (run(true), run(false));
        assert_near(o, exact_o, 1e-4);
        grads.into_iter().zip(exact).for_each(|(grad, exact)| assert_near(grad, exact, 1e-4));
    }
}

#[test]
fn gradients_of_some_and_of_none() {
    let device = Device::flex().autodiff();
    let (x, k) = (numbers([1, 2, 5, 4], &device), numbers([1, 2, 5, 4], &device).require_grad());
    let o = attention(x.clone(), k.clone(), x.clone(), &problem());
    let grads = (o.clone() * numbers([1, 2, 5, 4], &device)).sum().backward();
    assert!(x.grad(&grads).is_none());
    let exact = burns(x.clone(), k.clone(), x.clone(), None, None, AttentionModuleOptions::default());
    let exact = k.grad(&(exact * numbers([1, 2, 5, 4], &device)).sum().backward()).unwrap();
    assert_near(k.grad(&grads).unwrap(), exact, 1e-5);
    // A loss that depends on LSE alone.
    let (_, lse) = attention_lse(x.clone(), k.clone(), x.clone(), &problem());
    let of_k = k.grad(&(lse * numbers([1, 2, 5], &device)).sum().backward()).unwrap();
    let exact = scores(x.clone(), k.clone(), None, &AttentionModuleOptions::default());
    assert_near(of_k, k.grad(&(exact * numbers([1, 2, 5], &device)).sum().backward()).unwrap(), 1e-5);
    // One tensor for all three.
    let x = x.require_grad();
    let run = |o: Tensor<4>| x.grad(&(o * numbers([1, 2, 5, 4], &device)).sum().backward()).unwrap();
    let own = run(attention(x.clone(), x.clone(), x.clone(), &problem()));
    assert_near(own, run(burns(x.clone(), x.clone(), x.clone(), None, None, Default::default())), 1e-5);
    let plain = numbers([1, 2, 5, 4], &Device::flex());
    assert_near(attention(plain.clone(), plain.clone(), plain, &problem()), o.inner(), 1e-6);
}

#[test]
fn queries_without_keys_and_nothing_at_all() {
    for device in devices() {
        let [q, k, v] = [3, 2, 2].map(|rows| numbers([1, 1, rows, 2], &device).require_grad());
        let (o, lse) = attention_lse(q.clone(), k.clone(), v.clone(), &problem().causal(BOTTOM));
        let grads = o.clone().sum().backward();
        assert_eq!(o.slice([0..1, 0..1, 0..1, 0..2]).into_data().try_into_vec::<f32>().unwrap(), [0.; 2]);
        let lse = lse.into_data().try_into_vec::<f32>().unwrap();
        assert!(lse[0] == f32::NEG_INFINITY && lse[1].is_finite());
        let of_q = q.grad(&grads).unwrap().into_data().try_into_vec::<f32>().unwrap();
        assert!(of_q[..2] == [0.; 2] && of_q.iter().all(|value| value.is_finite()), "{of_q:?}");

        let empty = |batch: usize, queries: usize, keys: usize| {
            let [q, k, v] =
                [queries, keys, keys].map(|rows| Tensor::<4>::ones([batch, 2, rows, 3], &device).require_grad());
            let o = attention(q.clone(), k.clone(), v.clone(), &problem());
            assert_eq!((o.dims(), o.clone().abs().sum().into_scalar::<f32>()), ([batch, 2, queries, 3], 0.0));
            let grads = o.sum().backward();
            let of = [q, k, v].map(|input| input.grad(&grads).unwrap().abs().sum().into_scalar::<f32>());
            assert_eq!(of, [0.0; 3]);
        };
        empty(0, 4, 5);
        empty(2, 0, 5);
        empty(2, 4, 0);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    setup();
    for device in devices() {
        let q = |shape: [usize; 4]| Tensor::<4>::ones(shape, &device);
        let refused = |o: &dyn Fn() -> Tensor<4>, part: &str| {
            let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(o)).expect_err("it must be refused");
            let message = payload.downcast_ref::<String>().unwrap();
            assert!(message.contains(part), "{message}");
        };
        let with = |problem: Attention| attention(q([2, 4, 5, 8]), q([2, 2, 7, 8]), q([2, 2, 7, 8]), &problem);
        assert_eq!(with(problem()).dims(), [2, 4, 5, 8]);
        let shapes = |of_k, of_v| attention(q([2, 4, 5, 8]), q(of_k), q(of_v), &problem());
        refused(&|| shapes([2, 2, 7, 6], [2, 2, 7, 8]), "k [2, 2, 7, 6]");
        refused(&|| shapes([2, 2, 7, 8], [2, 2, 6, 8]), "v [2, 2, 6, 8]");
        refused(&|| shapes([1, 2, 7, 8], [1, 2, 7, 8]), "one batch");
        refused(&|| shapes([2, 3, 7, 8], [2, 3, 7, 8]), "q has 4 heads, k and v 3");
        refused(&|| shapes([2, 2, 7, 8], [2, 2, 7, 0]), "a depth must be 1 or more");
        let k = || q([2, 2, 7, 8]).cast(DType::F64);
        refused(&|| attention(q([2, 4, 5, 8]), k(), q([2, 2, 7, 8]), &problem()), "k of F64 and q of F32");
        let undirected = Attention { causal: true, ..problem() };
        refused(&|| with(undirected.clone()), "5 queries and 7 keys: causality and windows want a diagonal");
        refused(&|| with(problem().window(0, 2, TOP).causal(TOP)), "a right window of 2 keys");
        refused(&|| with(problem().sinks(2)), "2 sinks without a left window");
        refused(&|| with(problem().scale(f64::NAN)), "scale = NaN");
        refused(&|| with(problem().softcap(-1.0)), "softcap = -1");
        refused(&|| with(problem().tuning(TuneConfig::new().with_budget(Some(-1.0)))), "budget");
        let mask = |shape| BsrPattern::new(shape, [4, 4], &[0, 1, 2], &[0, 1]).unwrap();
        assert_eq!(with(problem().mask(&mask([5, 7]))).dims(), [2, 4, 5, 8]);
        refused(&|| with(problem().mask(&mask([6, 7]))), "a mask of [6, 7]: it must be [5, 7]");
        refused(&|| with(problem().mask_lists(&mask([5, 7]), 3, 1)), "a mask of 3 lists in an item");
        refused(&|| with(problem().mask_lists(&mask([5, 7]), 1, 3)), "a mask of 3 items for a batch of 2");
        refused(&|| with(problem().mask_lists(&mask([5, 7]), 2, 1)), "it must be [16, 7]");
    }
}

#[test]
fn gradients_of_gradients_are_refused() {
    let device = Device::flex().autodiff();
    let one = Tensor::<4>::ones([1, 1, 1, 1], &device);
    let (tracked, lse) = (one.clone().require_grad().into_dispatch(), Tensor::<3>::ones([1, 1, 1], &device));
    let (one, lse) = (one.into_dispatch(), lse.into_dispatch());
    let run = || {
        let of = |grad_o| {
            let (q, k, v, o) = (one.clone(), one.clone(), one.clone(), one.clone());
            <Dispatch as AttentionOps>::sparse_attention_backward(
                q,
                k,
                v,
                o,
                lse.clone(),
                grad_o,
                lse.clone(),
                problem(),
            )
        };
        of(one.clone());
        of(tracked.clone())
    };
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("it must be refused");
    let message = payload.downcast_ref::<&str>().unwrap();
    assert!(message.contains("second derivatives are not supported"), "{message}");
}
