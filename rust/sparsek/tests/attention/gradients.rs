//! The gradients: against their definition, which is itself against differences of a loss.
use super::*;
use sparsek::{AttentionBackward, AttentionBackwardArgs, AttentionBackwardPlan, AttentionBackwardPointers};

/// The operands of a run: Q, K and V, O and LSE, the gradients by those.
struct Operands<T: Element> {
    inputs: [Vec<T>; 3],
    o: Vec<T>,
    lse: Vec<T::Sum>,
    grad_o: Vec<T>,
    grad_lse: Vec<T::Sum>,
}

impl<T: Number> Operands<T>
where
    T::Sum: Number,
{
    fn of(case: &Case, mask: Mask) -> Operands<T> {
        let inputs = case.operands::<T>();
        let (o, lse) = case.formula(&inputs[0], &inputs[1], &inputs[2], mask);
        Operands {
            inputs,
            o: o.iter().map(|&o| T::of(o)).collect(),
            lse: lse.iter().map(|&lse| T::Sum::of(lse)).collect(),
            grad_o: numbers(o.len(), 4),
            grad_lse: numbers(lse.len(), 5),
        }
    }

    fn args<'a>(&'a self, case: &Case, grads: [&'a mut [T]; 3], arrays: Arrays<'a>) -> AttentionBackwardArgs<'a, T> {
        let [q, k, v] = &self.inputs;
        let args = AttentionBackwardArgs::new([q, k, v], (&self.o, &self.lse), &self.grad_o, grads);
        let args = args.grad_lse(&self.grad_lse).softcap(case.softcap).tiles(arrays.tiles.0, arrays.tiles.1);
        let args = args.query_ends(arrays.query_ends).key_ends(arrays.key_ends);
        if let Some(scale) = case.scale { args.scale(scale) } else { args }
    }
}

impl Case {
    /// The gradients by Q, K and V.
    fn gradients<T: Number>(&self, given: &Operands<T>, mask: Mask, use_lse: bool) -> [Vec<f64>; 3]
    where
        T::Sum: Number,
    {
        let [q, k, v] = &given.inputs;
        let scale = self.scale.unwrap_or(1.0 / (self.depth as f64).sqrt());
        let [mut grad_q, mut grad_k, mut grad_v] = [q, k, v].map(|input| vec![0f64; input.len()]);
        for row in 0..self.items * self.heads * self.queries {
            let (query, head, item) =
                (row % self.queries, row / self.queries % self.heads, row / self.queries / self.heads);
            let head_kv = head / (self.heads / self.heads_kv);
            let of_q = self.at((item, head, query), self.heads, self.queries, self.depth);
            let of_o = self.at((item, head, query), self.heads, self.queries, self.depth_v);
            let place = |key, depth| self.at((item, head_kv, key), self.heads_kv, self.keys, depth);
            let dot = |a: &[T], b: &[T]| -> f64 { a.iter().zip(b).map(|(a, b)| a.wide() * b.wide()).sum() };
            let keys = (0..self.keys).filter(|&key| self.sees(query, key) && mask(item, head, query, key));
            // Key, score, its slope under the cap, gradient by its share.
            let mut terms: Vec<(usize, f64, f64, f64)> = Vec::new();
            for key in keys {
                let score = scale * dot(&q[of_q..][..self.depth], &k[place(key, self.depth)..][..self.depth]);
                let bent = if self.softcap != 0.0 { (score / self.softcap).tanh() } else { 0.0 };
                let score = if self.softcap != 0.0 { self.softcap * bent } else { score };
                let of_v = &v[place(key, self.depth_v)..][..self.depth_v];
                terms.push((key, score, 1.0 - bent * bent, dot(&given.grad_o[of_o..][..self.depth_v], of_v)));
            }
            let sum: f64 = terms.iter().map(|(_, score, ..)| score.exp()).sum();
            let mean: f64 = terms.iter().map(|(_, score, _, by_share)| score.exp() / sum * by_share).sum();
            let by_lse = if use_lse { given.grad_lse[row].wide() } else { 0.0 };
            for (key, score, slope, by_share) in terms {
                let share = score.exp() / sum;
                let by_score = scale * slope * share * (by_share - mean + by_lse);
                for i in 0..self.depth {
                    grad_q[of_q + i] += by_score * k[place(key, self.depth) + i].wide();
                    grad_k[place(key, self.depth) + i] += by_score * q[of_q + i].wide();
                }
                for i in 0..self.depth_v {
                    grad_v[place(key, self.depth_v) + i] += share * given.grad_o[of_o + i].wide();
                }
            }
        }
        [grad_q, grad_k, grad_v]
    }

    /// At once, from a plan and by pointers, beside the definition, for losses that depend on LSE, too, and those that do not.
    #[track_caller]
    fn check_gradients<T: Number>(&self, context: &Context, problem: &Attention, mask: Mask, arrays: Arrays)
    where
        T::Sum: Number,
    {
        let given = Operands::<T>::of(self, mask);
        for way in 0..4 {
            let use_lse = way != 1;
            let exact = self.gradients(&given, mask, use_lse);
            let problem = problem.backward();
            let problem = if use_lse { problem.use_grad_lse() } else { problem };
            let mut grads = exact.each_ref().map(|exact| vec![T::of(9.0); exact.len()]);
            let [grad_q, grad_k, grad_v] = &mut grads;
            match way {
                0 | 1 => {
                    let args = given.args(self, [grad_q, grad_k, grad_v], arrays);
                    context.attention_backward(&problem, args, &estimate()).unwrap();
                }
                2 => {
                    let args = given.args(self, [grad_q, grad_k, grad_v], arrays);
                    context.plan_attention_backward(&problem, &estimate()).unwrap().run(args).unwrap();
                }
                _ => {
                    let ([q, k, v], o) = (&given.inputs, given.o.as_ptr().cast_mut());
                    let mut forward = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o);
                    forward.lse = given.lse.as_ptr().cast_mut();
                    (forward.scale, forward.softcap) = (self.scale, self.softcap);
                    (forward.query_ends, forward.key_ends) = (arrays.query_ends.as_ptr(), arrays.key_ends.as_ptr());
                    (forward.tile_numbers, forward.tile_bits) = (arrays.tiles.0.as_ptr(), arrays.tiles.1.as_ptr());
                    let to = [grad_q, grad_k, grad_v].map(|grad| grad.as_mut_ptr());
                    let mut pointers = AttentionBackwardPointers::of(&forward, given.grad_o.as_ptr(), to);
                    pointers.grad_lse = given.grad_lse.as_ptr();
                    let plan = context.plan_attention_backward(&problem, &estimate()).unwrap();
                    // SAFETY: the arrays have the lengths of the problem.
                    unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }.unwrap();
                }
            }
            for (grad, exact) in grads.into_iter().zip(&exact) {
                assert_near(grad, exact);
            }
        }
    }
}

const SMALL: Case = Case { heads_kv: 2, queries: 11, keys: 14, depth: 8, depth_v: 6, ..PLAIN };

#[test]
fn the_definition_is_that_of_differences() {
    let mask = |_: usize, head: usize, query: usize, key: usize| (head * 3 + query * 5 + key) % 4 != 0;
    for softcap in [0.0, 0.75] {
        let case = Case { scale: Some(0.9), softcap, causal: true, diagonal: Some(Diagonal::BottomRight), ..SMALL };
        let mut given = Operands::<f64>::of(&case, &mask);
        let exact = case.gradients(&given, &mask, true);
        for (which, exact) in exact.iter().enumerate() {
            for element in (0..exact.len()).step_by(exact.len() / 7) {
                let kept = given.inputs[which][element];
                let mut loss = |by: f64| -> f64 {
                    given.inputs[which][element] = kept + by;
                    let (o, lse) = case.formula(&given.inputs[0], &given.inputs[1], &given.inputs[2], &mask);
                    let of_o: f64 = o.iter().zip(&given.grad_o).map(|(o, grad)| o * grad).sum();
                    let seen = lse.iter().zip(&given.grad_lse).filter(|(lse, _)| lse.is_finite());
                    of_o + seen.map(|(lse, grad)| lse * grad).sum::<f64>()
                };
                let difference = (loss(1e-5) - loss(-1e-5)) / 2e-5;
                given.inputs[which][element] = kept;
                assert!((difference - exact[element]).abs() < 1e-8, "{which}, {element}: {difference}");
            }
        }
    }
}

fn types<T: Number>()
where
    T::Sum: Number,
{
    let context = context();
    for (queries, keys, depth, depth_v) in [(1, 1, 1, 1), (7, 33, 8, 24), (48, 65, 32, 32), (5, 4, 64, 16)] {
        let case = Case { queries, keys, depth, depth_v, items: 1, heads_kv: 2, ..PLAIN };
        case.check_gradients::<T>(&context, &case.problem(), UNMASKED, Arrays::default());
    }
}

#[test]
fn element_types() {
    types::<f32>();
    types::<f64>();
    types::<f16>();
    types::<bf16>();
}

#[test]
fn bands_and_layouts() {
    let context = context();
    for (by_rows, diagonal) in [(false, Diagonal::TopLeft), (true, Diagonal::BottomRight)] {
        for (queries, keys) in [(11, 14), (14, 11)] {
            let sized = Case { queries, keys, diagonal: Some(diagonal), by_rows, ..SMALL };
            for (causal, left, right, sinks) in
                [(true, 0, 0, 0), (true, 5, 0, 3), (false, 4, 3, 0), (false, 0, 2, 0), (false, 1, 1, 1)]
            {
                let case = Case { causal, left, right, sinks, ..sized };
                case.check_gradients::<f64>(&context, &case.problem(), UNMASKED, Arrays::default());
            }
        }
    }
}

#[test]
fn heads_scales_and_caps() {
    let context = context();
    for (heads, heads_kv) in [(1, 1), (4, 1), (6, 3)] {
        for (scale, softcap) in [(None, 0.0), (Some(-1.5), 0.75), (Some(0.0), 0.0)] {
            let case = Case { heads, heads_kv, scale, softcap, by_rows: heads == 6, ..SMALL };
            case.check_gradients::<f64>(&context, &case.problem(), UNMASKED, Arrays::default());
        }
    }
}

#[test]
fn masks_with_tiles_of_bits() {
    let context = context();
    for (block, of_heads, of_items) in [((8, 8), 1, 1), ((5, 7), 2, 1), ((16, 33), 4, 2), ((1, 32), 1, 2)] {
        let case = Case { keys: 40, causal: true, diagonal: Some(Diagonal::BottomRight), ..SMALL };
        let (pattern, mask) = lists(&context, &case, block, of_heads * of_items);
        let rows: Vec<&Vec<bool>> = mask.iter().flatten().collect();
        let words = block.1.div_ceil(32);
        let numbers: Vec<i32> = (0..pattern.nnzb()).map(|i| (i * 5 % 4) as i32 - 1).collect();
        let bits: Vec<u32> = (0..3 * block.0 * words).map(|i| (i as u32 + 1).wrapping_mul(2654435761)).collect();
        let block_of = |item: usize, head: usize, query: usize, key: usize| {
            let list = if of_items > 1 { item } else { 0 } * of_heads + head / (4 / of_heads);
            (list * mask[list].len() + query / block.0, key / block.1)
        };
        let before = |row: usize, col: usize| {
            let above = rows[..row].iter().flat_map(|row| row.iter()).filter(|&&stored| stored).count();
            above + rows[row][..col].iter().filter(|&&stored| stored).count()
        };
        let whole = |item: usize, head: usize, query: usize, key: usize| {
            let (row, col) = block_of(item, head, query, key);
            rows[row][col]
        };
        let tiled = |item: usize, head: usize, query: usize, key: usize| {
            let (row, col) = block_of(item, head, query, key);
            if !rows[row][col] {
                return false;
            }
            let number = numbers[before(row, col)];
            let word = (number.max(0) as usize * block.0 + query % block.0) * words + key % block.1 / 32;
            number < 0 || bits[word] >> (key % block.1 % 32) & 1 == 1
        };
        let problem = case.problem().mask_lists(&pattern, of_heads, of_items);
        case.check_gradients::<f64>(&context, &problem, &whole, Arrays::default());
        let arrays = Arrays { tiles: (&numbers, &bits), ..Arrays::default() };
        case.check_gradients::<f64>(&context, &problem.tiles(3), &tiled, arrays);
    }
}

#[test]
fn packed_sequences() {
    let context = context();
    let (queries, keys) = ([3, 0, 40, 1, 2], [5, 7, 33, 0, 9]);
    let (query_ends, key_ends) = (ends(&queries), ends(&keys));
    let place = |ends: &[i32], row: usize| {
        let number = ends.partition_point(|&end| end as usize <= row);
        (number, row - if number > 0 { ends[number - 1] as usize } else { 0 })
    };
    let sized = Case { items: 1, queries: queries.iter().sum(), keys: keys.iter().sum(), ..SMALL };
    for diagonal in [Diagonal::TopLeft, Diagonal::BottomRight] {
        for (causal, left, sinks) in [(true, 0, 0), (true, 9, 2)] {
            let case = Case { causal, left, sinks, diagonal: Some(diagonal), ..sized };
            let sees = |_: usize, _: usize, query: usize, key: usize| {
                let ((number, query), (of, key)) = (place(&query_ends, query), place(&key_ends, key));
                number == of && Case { queries: queries[of], keys: keys[of], ..case }.sees(query, key)
            };
            let plain = Case { causal: false, left: 0, sinks: 0, ..case };
            let arrays = Arrays { query_ends: &query_ends, key_ends: &key_ends, ..Arrays::default() };
            plain.check_gradients::<f64>(&context, &case.problem().sequences(queries.len()), &sees, arrays);
        }
    }
}

#[test]
fn key_lengths() {
    let context = context();
    let lengths = [0, 1, 9, 14];
    let case = Case { items: 4, ..SMALL };
    let sees = |item: usize, _: usize, _: usize, key: usize| key < lengths[item];
    let arrays = Arrays { key_ends: &[0, 1, 9, 14], ..Arrays::default() };
    case.check_gradients::<f32>(&context, &case.problem().key_lengths(), &sees, arrays);
}

#[test]
fn what_lies_behind_or_is_hidden_has_no_influence() {
    let context = context();
    // Two sequences of 5 and 3 queries on 6 and 4 keys; behind them all is NaN, and nothing is written.
    let case = Case { items: 1, heads: 1, heads_kv: 1, queries: 12, keys: 14, ..SMALL };
    let number = |row: usize, ends: [usize; 2]| usize::from(row >= ends[0]) + usize::from(row >= ends[1]);
    let mask = move |_: usize, _: usize, query: usize, key: usize| {
        number(query, [5, 8]) < 2 && number(query, [5, 8]) == number(key, [6, 10])
    };
    let mut given = Operands::<f64>::of(&case, &mask);
    let exact = case.gradients(&given, &mask, true);
    let [q, k, v] = &mut given.inputs;
    for (array, end, depth) in [(q, 8, 8), (k, 10, 8), (v, 10, 6), (&mut given.o, 8, 6), (&mut given.grad_o, 8, 6)] {
        array[end * depth..].fill(f64::NAN);
    }
    let mut grads = exact.each_ref().map(|exact| vec![7f64; exact.len()]);
    let [grad_q, grad_k, grad_v] = &mut grads;
    let arrays = Arrays { query_ends: &[5, 8], key_ends: &[6, 10], ..Arrays::default() };
    let problem = case.problem().sequences(2).backward().use_grad_lse();
    context.attention_backward(&problem, given.args(&case, [grad_q, grad_k, grad_v], arrays), &estimate()).unwrap();
    for ((grad, exact), written) in grads.iter().zip(&exact).zip([8 * 8, 10 * 8, 10 * 6]) {
        assert_near(grad[..written].iter().copied(), &exact[..written]);
        assert!(grad[written..].iter().all(|&value| value == 7.0), "nothing else is written");
    }

    // Keys that a mask hides from all, and queries that see none.
    let mask = Pattern::new(&context, (4, 4), (2, 2), &[0, 1, 1], &[0]).unwrap();
    let (nan, mut grads) = (f32::NAN, [[7f32; 4]; 3]);
    let [grad_q, grad_k, grad_v] = &mut grads;
    let (q, k, v, grad_o) = ([1., 2., nan, nan], [0., 0., nan, nan], [1., 3., nan, nan], [1., 1., nan, nan]);
    let (o, lse) = ([2., 2., 0., 0.], [2f32.ln(), 2f32.ln(), f32::NEG_INFINITY, f32::NEG_INFINITY]);
    let args = AttentionBackwardArgs::new([&q, &k, &v], (&o, &lse), &grad_o, [grad_q, grad_k, grad_v]);
    context.attention_backward(&Attention::new(4, 4, 1).mask(&mask).backward(), args, &estimate()).unwrap();
    assert_eq!(grads[0], [0.; 4]);
    assert_near(grads[1], &[-1.5, 1.5, 0., 0.]);
    assert_near(grads[2], &[1., 1., 0., 0.]);
}

#[test]
fn strides_and_lengths() {
    let context = context();
    let forward = Attention::new(3, 4, 2).batch(2).heads(2).ldq(5).head_stride_q(20).stride_q(50).share_v();
    let problem = forward.ldo(4).head_stride_o(2).stride_o(16).head_stride_lse(5).stride_lse(11).backward();
    let problem = problem.ld_grad_o(3).head_stride_grad_o(9).share_grad_o().use_grad_lse().share_grad_lse();
    let problem = problem.ld_grad_q(5).head_stride_grad_q(2).stride_grad_q(17).ld_grad_k(3).stride_grad_v(20);
    let lengths = [82, 32, 16, 28, 19, 17, 6, 31, 47, 36];
    let names = ["q", "k", "v", "o", "lse", "grad_o", "grad_lse", "grad_q", "grad_k", "grad_v"];
    for short in 0..=lengths.len() {
        let mut arrays: Vec<Vec<f64>> = lengths.iter().map(|&length| vec![1.0; length]).collect();
        if short < lengths.len() {
            arrays[short].pop();
        }
        let (inputs, outputs) = arrays.split_at_mut(7);
        let [q, k, v, o, lse, grad_o, grad_lse] = &*inputs else { unreachable!() };
        let [grad_q, grad_k, grad_v] = outputs else { unreachable!() };
        let args = AttentionBackwardArgs::new([q, k, v], (o, lse), grad_o, [grad_q, grad_k, grad_v]).grad_lse(grad_lse);
        let result = context.attention_backward(&problem, args, &estimate());
        match names.get(short) {
            None => result.unwrap(),
            Some(name) => {
                let length = lengths[short];
                refused(result, &format!("{name} has {} elements: the problem needs {length}", length - 1));
            }
        }
    }
}

#[test]
fn what_is_no_problem_is_refused() {
    let (context, other) = (context(), common::context());
    let run = |problem: AttentionBackward| {
        let (one, mut grads) = (vec![1f32; 200], [const { [0f32; 200] }; 3]);
        let [grad_q, grad_k, grad_v] = &mut grads;
        let by_plan = context.plan_attention_backward::<f32>(&problem, &estimate()).map(|_| ());
        let args = AttentionBackwardArgs::new([&one, &one, &one], (&one, &one), &one, [grad_q, grad_k, grad_v]);
        let at_once = context.attention_backward(&problem, args.grad_lse(&one), &estimate());
        assert!(by_plan.is_ok() || at_once.is_err(), "{problem:?}");
        at_once
    };
    run(Attention::new(3, 4, 2).backward()).unwrap();
    let paged = Attention::new(1, 4, 2).pages(2, 3);
    refused(run(paged.backward()), "page_keys = 2 and pages = 3: K and V in pages have no gradients");
    refused(run(Attention::new(3, 4, 2).causal().backward()), "diagonal = none");
    refused(run(Attention::new(3, 3, 2).heads(3).heads_kv(2).backward()), "heads_kv = 2");
    refused(run(Attention::new(3, 3, 2).backward().ld_grad_q(1)), "ld_grad_q = 1: a row has 2 elements");
    refused(run(Attention::new(3, 3, 2).heads(2).backward().head_stride_grad_v(1)), "head_stride_grad_v = 1");
    refused(run(Attention::new(3, 3, 2).batch(2).backward().stride_grad_k(2)), "stride_grad_k = 2");
    let theirs = Pattern::new(&other, (3, 4), (2, 2), &[0, 1, 1], &[0]).unwrap();
    refused(run(Attention::new(3, 4, 2).mask(&theirs).backward()), "another context");
    for huge in [usize::MAX, 1 << 62, 1 << 40] {
        for forward in [Attention::new(huge, 3, 3), Attention::new(3, huge, 3), Attention::new(3, 3, huge)] {
            assert!(run(forward.backward()).is_err());
            assert!(run(forward.rows_of_heads().backward()).is_err());
        }
        let one = Attention::new(3, 3, 3).batch(2).heads(2);
        for problem in [one.backward().ld_grad_k(huge), one.backward().stride_grad_o(huge)] {
            assert!(run(problem).is_err());
        }
    }

    let (one, mut grads) = ([1f32; 12], [[0f32; 12]; 3]);
    let [grad_q, grad_k, grad_v] = &mut grads;
    let args = AttentionBackwardArgs::new([&one, &one, &one], (&one, &one), &one, [grad_q, grad_k, grad_v]);
    let packed = Attention::new(4, 6, 2).sequences(2).backward();
    let args = args.query_ends(&[1, 5]).key_ends(&[6, 6]);
    let limits = "query_ends[1] = 5: the sequence begins at 1, and there are 4 queries";
    refused(context.attention_backward(&packed, args, &estimate()), limits);
}

#[test]
fn the_oracle_plans_and_reports() {
    let context = context();
    let case = Case { causal: true, diagonal: Some(Diagonal::TopLeft), ..SMALL };
    let (pattern, mask) = lists(&context, &case, (8, 4), 4);
    let sees = |_: usize, head: usize, query: usize, key: usize| mask[head][query / 8][key / 4];
    let problem = case.problem().mask_lists(&pattern, 4, 1).backward();
    let given = Operands::<f64>::of(&case, &sees);
    let exact = case.gradients(&given, &sees, false);
    let mut grads = exact.each_ref().map(|exact| vec![0f64; exact.len()]);
    let [grad_q, grad_k, grad_v] = &mut grads;
    let args = given.args(&case, [grad_q, grad_k, grad_v], Arrays::default());
    let printed = format!("{args:?}");
    assert!(printed.starts_with("AttentionBackwardArgs { q: 704, k: 448, v: 336, o: 528, lse: 88"), "{printed}");
    for (oracle, exact) in context.oracle_attention_backward(&problem, args).unwrap().into_iter().zip(&exact) {
        assert_near(oracle, exact);
    }

    let plan: AttentionBackwardPlan<f64> = context.plan_attention_backward(&problem, &estimate()).unwrap();
    drop(pattern); // the plan keeps it
    assert!(format!("{plan:?}").starts_with("AttentionBackwardPlan { choice: "), "{plan:?}");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let mut grads = exact.each_ref().map(|exact| vec![0f64; exact.len()]);
                    let [grad_q, grad_k, grad_v] = &mut grads;
                    plan.run(given.args(&case, [grad_q, grad_k, grad_v], Arrays::default())).unwrap();
                    grads.into_iter().zip(&exact).for_each(|(grad, exact)| assert_near(grad, exact));
                }
            });
        }
    });

    let options = TuneOptions::new().tuning(Tuning::Now).budget(std::time::Duration::from_millis(100));
    let problem = Attention::new(64, 48, 32).heads(2).backward();
    let report = context.tune_attention_backward::<f32>(&problem, &options).unwrap();
    assert!(!report.from_store && report.chosen().unwrap().median_us > 0.0);
    assert!(context.explain_attention_backward::<f32>(&problem, &TuneOptions::new()).unwrap().from_store);
    let plan = context.plan_attention_backward::<f32>(&problem, &TuneOptions::new().tuning(Tuning::AheadEach)).unwrap();
    assert_eq!(plan.info().unwrap().kernel, report.chosen().unwrap().name);
}
