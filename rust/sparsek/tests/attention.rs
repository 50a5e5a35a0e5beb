//! Attention against the definition: bands, sinks, shared heads, layouts, masks of blocks, LSE, rows that see nothing, refusals.
mod common;

use common::{Number, assert_near, context, estimate, numbers};
use half::{bf16, f16};
use sparsek::{Attention, AttentionArgs, AttentionPlan, AttentionPointers, Diagonal, Element};
use sparsek::{Context, ErrorKind, Pattern, Result, TuneOptions};

/// What a test asks for, in words of its own.
#[derive(Clone, Copy)]
struct Case {
    items: usize,
    heads: usize,
    heads_kv: usize,
    queries: usize,
    keys: usize,
    depth: usize,
    depth_v: usize,
    diagonal: Option<Diagonal>,
    causal: bool,
    left: usize,
    right: usize,
    sinks: usize,
    scale: Option<f64>,
    softcap: f64,
    by_rows: bool,
}

const PLAIN: Case = Case {
    items: 2,
    heads: 4,
    heads_kv: 4,
    queries: 19,
    keys: 27,
    depth: 16,
    depth_v: 16,
    diagonal: None,
    causal: false,
    left: 0,
    right: 0,
    sinks: 0,
    scale: None,
    softcap: 0.0,
    by_rows: false,
};

/// Whether query i of a head of an item sees key j, by a mask.
type Mask<'a> = &'a dyn Fn(usize, usize, usize, usize) -> bool;

const UNMASKED: Mask<'static> = &|_, _, _, _| true;

impl Case {
    fn problem(&self) -> Attention {
        let mut problem = Attention::new(self.queries, self.keys, self.depth).depth_v(self.depth_v).batch(self.items);
        problem = problem.heads(self.heads).heads_kv(self.heads_kv).want_lse();
        problem = problem.window_left(self.left).window_right(self.right).sinks(self.sinks);
        if let Some(diagonal) = self.diagonal {
            problem = problem.diagonal(diagonal);
        }
        problem = if self.causal { problem.causal() } else { problem };
        problem = if self.softcap != 0.0 { problem.soft_cap() } else { problem };
        if self.by_rows { problem.rows_of_heads() } else { problem }
    }

    /// Where a row begins.
    fn at(&self, (item, head, row): (usize, usize, usize), heads: usize, rows: usize, depth: usize) -> usize {
        let place = if self.by_rows { (item * rows + row) * heads + head } else { (item * heads + head) * rows + row };
        place * depth
    }

    fn sees(&self, query: usize, key: usize) -> bool {
        let below =
            if self.diagonal == Some(Diagonal::BottomRight) { self.keys as i64 - self.queries as i64 } else { 0 };
        let (beside, key) = (query as i64 + below, key as i64);
        (!self.causal || key <= beside)
            && (self.right == 0 || key < beside + self.right as i64)
            && (self.left == 0 || key > beside - self.left as i64 || key < self.sinks as i64)
    }

    fn lengths(&self) -> [usize; 4] {
        let (of_queries, of_keys) = (self.items * self.heads * self.queries, self.items * self.heads_kv * self.keys);
        [of_queries * self.depth, of_keys * self.depth, of_keys * self.depth_v, of_queries * self.depth_v]
    }

    /// O and LSE.
    fn formula<T: Number>(&self, q: &[T], k: &[T], v: &[T], mask: Mask) -> (Vec<f64>, Vec<f64>) {
        let scale = self.scale.unwrap_or(1.0 / (self.depth as f64).sqrt());
        let mut o = vec![0f64; self.lengths()[3]];
        let mut lse = vec![f64::NEG_INFINITY; self.items * self.heads * self.queries];
        for (row, lse) in lse.iter_mut().enumerate() {
            let (query, head, item) =
                (row % self.queries, row / self.queries % self.heads, row / self.queries / self.heads);
            let head_kv = head / (self.heads / self.heads_kv);
            let of_q = &q[self.at((item, head, query), self.heads, self.queries, self.depth)..][..self.depth];
            let keys = (0..self.keys).filter(|&key| self.sees(query, key) && mask(item, head, query, key));
            let terms: Vec<(usize, f64)> = keys
                .map(|key| {
                    let of_k = &k[self.at((item, head_kv, key), self.heads_kv, self.keys, self.depth)..][..self.depth];
                    let sum: f64 = of_q.iter().zip(of_k).map(|(&a, &b)| a.wide() * b.wide()).sum();
                    let score = scale * sum;
                    (key, if self.softcap != 0.0 { self.softcap * (score / self.softcap).tanh() } else { score })
                })
                .collect();
            let sum: f64 = terms.iter().map(|(_, score)| score.exp()).sum();
            *lse = sum.ln();
            let begin = self.at((item, head, query), self.heads, self.queries, self.depth_v);
            for (key, score) in terms {
                let of_v = &v[self.at((item, head_kv, key), self.heads_kv, self.keys, self.depth_v)..][..self.depth_v];
                for (o, v) in o[begin..].iter_mut().zip(of_v) {
                    *o += score.exp() / sum * v.wide();
                }
            }
        }
        (o, lse)
    }

    fn operands<T: Number>(&self) -> [Vec<T>; 3] {
        let [q, k, v, _] = self.lengths();
        [numbers(q, 1), numbers(k, 2), numbers(v, 3)]
    }

    /// At once, from a plan and by pointers, beside the definition and the oracle.
    #[track_caller]
    fn check<T: Number>(&self, context: &Context, problem: &Attention, mask: Mask)
    where
        T::Sum: Number,
    {
        let [q, k, v] = self.operands::<T>();
        let (exact, exact_lse) = self.formula(&q, &k, &v, mask);
        let (length, rows) = (exact.len(), exact_lse.len());
        for way in 0..3 {
            let (mut o, mut lse) = (vec![T::of(9.0); length], vec![T::Sum::of(9.0); rows]);
            let args = AttentionArgs::new(&q, &k, &v, &mut o).lse(&mut lse).softcap(self.softcap);
            let args = if let Some(scale) = self.scale { args.scale(scale) } else { args };
            match way {
                0 => context.attention(problem, args, &estimate()).unwrap(),
                1 => context.plan_attention(problem, &estimate()).unwrap().run(args).unwrap(),
                _ => {
                    let mut pointers = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
                    (pointers.scale, pointers.softcap, pointers.lse) = (self.scale, self.softcap, lse.as_mut_ptr());
                    let plan = context.plan_attention(problem, &estimate()).unwrap();
                    // SAFETY: the arrays have the lengths of the problem.
                    unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }.unwrap();
                }
            }
            assert_near(o, &exact);
            assert_near_or_none(&lse, &exact_lse);
        }
    }
}

/// Infinite where nothing is seen.
#[track_caller]
fn assert_near_or_none<T: Number>(got: &[T], exact: &[f64]) {
    assert_eq!(got.len(), exact.len());
    for (got, exact) in got.iter().map(|got| got.wide()).zip(exact) {
        assert!(got == *exact || (got - exact).abs() <= T::TOLERANCE * (1.0 + exact.abs()), "{got}, exact {exact}");
    }
}

fn types<T: Number>()
where
    T::Sum: Number,
{
    let context = context();
    for (queries, keys, depth, depth_v) in [(1, 1, 1, 1), (7, 33, 8, 24), (64, 65, 32, 32), (5, 4, 64, 16)] {
        let case = Case { queries, keys, depth, depth_v, ..PLAIN };
        case.check::<T>(&context, &case.problem(), UNMASKED);
    }
}

#[test]
fn element_types() {
    types::<f32>();
    types::<f64>();
    types::<f16>();
    types::<bf16>();
    assert_eq!(<f16 as Element>::Sum::DTYPE, f32::DTYPE);
}

#[test]
fn bands() {
    let context = context();
    for by_rows in [false, true] {
        for diagonal in [Diagonal::TopLeft, Diagonal::BottomRight] {
            for (queries, keys) in [(19, 27), (27, 19), (20, 20), (1, 40)] {
                let sized = Case { queries, keys, diagonal: Some(diagonal), by_rows, ..PLAIN };
                for (causal, left, right, sinks) in [
                    (true, 0, 0, 0),
                    (true, 5, 0, 0),
                    (true, 5, 0, 3),
                    (false, 4, 3, 0),
                    (false, 4, 0, 2),
                    (false, 0, 2, 0),
                    (false, 1, 1, 1),
                    (false, 1000, 1000, 1000),
                ] {
                    let case = Case { causal, left, right, sinks, ..sized };
                    case.check::<f64>(&context, &case.problem(), UNMASKED);
                }
            }
        }
    }
    let square = Case { keys: PLAIN.queries, causal: true, ..PLAIN }; // no diagonal is wanted
    square.check::<f32>(&context, &square.problem(), UNMASKED);
}

#[test]
fn heads_that_share() {
    let context = context();
    for (heads, heads_kv) in [(1, 1), (4, 2), (6, 1), (6, 3)] {
        for by_rows in [false, true] {
            let case = Case { heads, heads_kv, by_rows, depth_v: 8, ..PLAIN };
            case.check::<f32>(&context, &case.problem(), UNMASKED);
        }
    }
    let unsaid = PLAIN;
    let problem = Attention::new(unsaid.queries, unsaid.keys, unsaid.depth).batch(2).heads(4).want_lse();
    unsaid.check::<f32>(&context, &problem, UNMASKED);
}

#[test]
fn scale_and_softcap() {
    let context = context();
    let case = Case { scale: Some(-1.5), softcap: 0.75, ..PLAIN };
    case.check::<f64>(&context, &case.problem(), UNMASKED);
    let case = Case { scale: Some(0.0), ..PLAIN };
    case.check::<f32>(&context, &case.problem(), UNMASKED);
}

/// A pattern of lists of blocks, each block drawn; and whether a block is stored: list, block row, block column.
fn lists(context: &Context, case: &Case, block: (usize, usize), count: usize) -> (Pattern, Vec<Vec<Vec<bool>>>) {
    let (down, across) = (case.queries.div_ceil(block.0), case.keys.div_ceil(block.1));
    let stored = |list: usize, row: usize, col: usize| (list * 31 + row * 17 + col * 7919) % 5 < 2 && row != 1;
    let mask: Vec<Vec<Vec<bool>>> = (0..count)
        .map(|list| (0..down).map(|row| (0..across).map(|col| stored(list, row, col)).collect()).collect())
        .collect();
    let (mut offsets, mut columns) = (vec![0i64], Vec::new());
    for row in mask.iter().flatten() {
        columns.extend((0..across).filter(|&col| row[col]).map(|col| col as i64));
        offsets.push(columns.len() as i64);
    }
    let rows = if count == 1 { case.queries } else { count * down * block.0 };
    (Pattern::new(context, (rows, case.keys), block, &offsets, &columns).unwrap(), mask)
}

#[test]
fn masks_of_blocks() {
    let context = context();
    for block in [(8, 8), (5, 7), (1, 3), (16, 2), (256, 1)] {
        for (heads, heads_kv, of_heads, of_items) in
            [(4, 2, 1, 1), (4, 2, 2, 1), (4, 2, 4, 1), (4, 2, 1, 2), (4, 2, 4, 2), (1, 1, 1, 2)]
        {
            for (causal, left, sinks) in [(false, 0, 0), (true, 0, 0), (true, 6, 2)] {
                let diagonal = Some(Diagonal::BottomRight);
                let case = Case { heads, heads_kv, causal, left, sinks, diagonal, ..PLAIN };
                let (pattern, mask) = lists(&context, &case, block, of_heads * of_items);
                let kept = move |item: usize, head: usize, query: usize, key: usize| {
                    let item = if of_items > 1 { item } else { 0 };
                    let list = item * of_heads + head / (heads / of_heads);
                    mask[list][query / block.0][key / block.1]
                };
                let problem = case.problem();
                let problem = match of_heads * of_items {
                    1 => problem.mask(&pattern),
                    _ => problem.mask_lists(&pattern, of_heads, of_items),
                };
                case.check::<f64>(&context, &problem, &kept);
            }
        }
    }
}

#[test]
fn rows_without_keys_are_zero() {
    let context = context();
    let case = Case { queries: 9, keys: 4, causal: true, diagonal: Some(Diagonal::BottomRight), ..PLAIN };
    let [q, k, v] = case.operands::<f32>();
    let (mut o, mut lse) = (vec![7f32; case.lengths()[3]], vec![7f32; 2 * 4 * 9]);
    context.attention(&case.problem(), AttentionArgs::new(&q, &k, &v, &mut o).lse(&mut lse), &estimate()).unwrap();
    for (row, lse) in lse.iter().enumerate() {
        let nothing = row % 9 < 5;
        assert_eq!(*lse == f32::NEG_INFINITY, nothing);
        assert_eq!(o[row * 16..][..16].iter().all(|&o| o == 0.0), nothing);
    }
    let none = Pattern::new(&context, (3, 4), (2, 2), &[0, 0, 0], &[]).unwrap();
    let mut o = [7f32; 3];
    let problem = Attention::new(3, 4, 1).mask(&none);
    context
        .attention(&problem, AttentionArgs::new(&[1.; 3], &[f32::NAN; 4], &[f32::NAN; 4], &mut o), &estimate())
        .unwrap();
    assert_eq!(o, [0.; 3]);
    let mut o = [7f32; 6];
    context.attention(&Attention::new(3, 0, 2), AttentionArgs::new(&[1.; 6], &[], &[], &mut o), &estimate()).unwrap();
    assert_eq!(o, [0.; 6]);
}

#[test]
fn strides_and_what_lies_between() {
    let context = context();
    let problem = Attention::new(3, 4, 2).batch(2).heads(2).want_lse().ldq(5).head_stride_q(20).stride_q(50);
    let problem = problem.ldk(3).head_stride_k(15).stride_k(40).ldv(2).head_stride_v(9).share_v();
    let problem = problem.ldo(4).head_stride_o(2).stride_o(16).head_stride_lse(5).stride_lse(11);
    let (q, k, v) = (numbers::<f64>(82, 1), numbers::<f64>(66, 2), numbers::<f64>(17, 3));
    let gather = |from: &[f64], rows: usize, ld: usize, head: usize, item: usize| -> Vec<f64> {
        let places = (0..2 * 2 * rows * 2).map(|i| {
            let (col, row, h, b) = (i % 2, i / 2 % rows, i / 2 / rows % 2, i / 2 / rows / 2);
            b * item + h * head + row * ld + col
        });
        places.map(|place| from[place]).collect()
    };
    let case = Case { queries: 3, keys: 4, depth: 2, depth_v: 2, heads: 2, heads_kv: 2, ..PLAIN };
    let (exact, exact_lse) =
        case.formula(&gather(&q, 3, 5, 20, 50), &gather(&k, 4, 3, 15, 40), &gather(&v, 4, 2, 9, 0), UNMASKED);
    let (mut o, mut lse) = (vec![f64::NAN; 28], vec![f64::NAN; 19]);
    context.attention(&problem, AttentionArgs::new(&q, &k, &v, &mut o).lse(&mut lse), &estimate()).unwrap();
    assert_near(gather(&o, 3, 4, 2, 16), &exact);
    let places = (0..12).map(|row| row / 6 * 11 + row / 3 % 2 * 5 + row % 3);
    assert_near_or_none(&places.map(|place| lse[place]).collect::<Vec<_>>(), &exact_lse);
    assert_eq!(o.iter().filter(|value| value.is_nan()).count(), 4, "nothing else is written");
    assert_eq!(lse.iter().filter(|value| value.is_nan()).count(), 7, "nothing else is written");

    // One element less of each.
    for short in 0..5 {
        let of = |operand: usize, length: usize| vec![0f64; length - usize::from(operand == short)];
        let (q, k, v, mut o, mut lse) = (of(0, 82), of(1, 66), of(2, 17), of(3, 28), of(4, 19));
        let result = context.attention(&problem, AttentionArgs::new(&q, &k, &v, &mut o).lse(&mut lse), &estimate());
        refused(result, ["q has 81", "k has 65", "v has 16", "o has 27", "lse has 18"][short]);
    }
}

#[track_caller]
fn refused(result: Result<()>, part: &str) {
    let error = result.expect_err("it must be refused");
    assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn what_is_no_problem_is_refused() {
    let context = context();
    let other = common::context();
    let run = |problem: Attention| {
        let (one, mut o, mut lse) = (vec![1f32; 200], vec![0f32; 200], vec![0f32; 200]);
        let by_plan = context.plan_attention::<f32>(&problem, &estimate()).map(|_| ());
        let at_once =
            context.attention(&problem, AttentionArgs::new(&one, &one, &one, &mut o).lse(&mut lse), &estimate());
        assert_eq!(by_plan.is_ok(), at_once.is_ok(), "{problem:?}");
        at_once
    };
    run(Attention::new(3, 4, 2)).unwrap();
    refused(run(Attention::new(3, 4, 2).causal()), "diagonal = 0");
    refused(run(Attention::new(3, 4, 2).window_right(2)), "diagonal = 0");
    refused(run(Attention::new(3, 3, 2).causal().window_right(2)), "window_right = 2");
    refused(run(Attention::new(3, 3, 2).sinks(2)), "sinks = 2");
    refused(run(Attention::new(3, 3, 2).heads(3).heads_kv(2)), "heads_kv = 2");
    refused(run(Attention::new(3, 3, 2).ldq(1)), "ldq = 1");
    refused(run(Attention::new(3, 3, 2).heads(2).head_stride_o(1)), "head_stride_o = 1");
    refused(run(Attention::new(3, 3, 2).batch(2).stride_lse(2).want_lse()), "stride_lse = 2");

    let mask = |shape| Pattern::new(&context, shape, (2, 2), &[0, 1, 1], &[0]).unwrap();
    run(Attention::new(3, 4, 2).mask(&mask((3, 4)))).unwrap();
    refused(run(Attention::new(4, 4, 2).mask(&mask((3, 4)))), "the pattern has 3 rows");
    refused(run(Attention::new(3, 5, 2).mask(&mask((3, 4)))), "the pattern has 4 columns");
    let lists = mask((4, 4));
    run(Attention::new(2, 4, 2).heads(2).mask_lists(&lists, 2, 1)).unwrap();
    run(Attention::new(2, 4, 2).batch(2).mask_lists(&lists, 1, 2)).unwrap();
    refused(run(Attention::new(2, 4, 2).heads(4).mask_lists(&lists, 3, 1)), "mask_heads = 3");
    refused(run(Attention::new(2, 4, 2).batch(3).mask_lists(&lists, 1, 2)), "mask_items = 2");
    refused(run(Attention::new(2, 4, 2).heads(4).mask_lists(&lists, 4, 1)), "the pattern has 4 rows");
    let theirs = Pattern::new(&other, (3, 4), (2, 2), &[0, 1, 1], &[0]).unwrap();
    refused(run(Attention::new(3, 4, 2).mask(&theirs)), "another context");

    for huge in [usize::MAX, usize::MAX / 2, 1 << 62, 1 << 40] {
        for problem in [
            Attention::new(huge, 3, 3),
            Attention::new(3, huge, 3),
            Attention::new(3, 3, huge),
            Attention::new(3, 3, huge).rows_of_heads(),
            Attention::new(3, 3, 3).depth_v(huge),
            Attention::new(3, 3, 3).batch(huge),
            Attention::new(3, 3, 3).heads(huge),
            Attention::new(3, 3, 3).heads(huge).heads_kv(1).rows_of_heads(),
            Attention::new(3, 3, 3).batch(2).stride_v(huge),
            Attention::new(3, 3, 3).heads(2).head_stride_k(huge),
        ] {
            let (one, mut o) = (vec![1f32; 200], vec![0f32; 200]);
            assert!(context.attention(&problem, AttentionArgs::new(&one, &one, &one, &mut o), &estimate()).is_err());
            assert!(context.oracle_attention(&problem, AttentionArgs::new(&one, &one, &one, &mut o)).is_err());
        }
    }
    let error = context.plan_attention::<f32>(&Attention::new(3, 3, 3), &estimate().static_values(true)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    let args = |o| AttentionArgs::new(&[1f32], &[1.], &[1.], o).scale(f64::NAN);
    refused(context.attention(&Attention::new(1, 1, 1), args(&mut [0.]), &estimate()), "scale");
}

#[test]
fn the_oracle_knows_masks() {
    let context = context();
    let case = Case { causal: true, diagonal: Some(Diagonal::TopLeft), ..PLAIN };
    let (pattern, mask) = lists(&context, &case, (8, 4), 4);
    let [q, k, v] = case.operands::<f32>();
    let (exact, _) = case.formula(&q, &k, &v, &|_, head, query, key| mask[head][query / 8][key / 4]);
    let problem = case.problem().mask_lists(&pattern, 4, 1);
    let (mut o, mut lse) = (vec![0f32; exact.len()], vec![0f32; 2 * 4 * case.queries]);
    let oracle = context.oracle_attention(&problem, AttentionArgs::new(&q, &k, &v, &mut o).lse(&mut lse)).unwrap();
    assert_near(oracle, &exact);
}

#[test]
fn plans_run_in_many_threads_and_outlive_their_mask() {
    let case = Case { keys: 64, ..PLAIN };
    let (plan, mask): (AttentionPlan<f64>, _) = {
        let context: Context = context();
        let (pattern, mask) = lists(&context, &case, (8, 8), 1);
        (context.plan_attention(&case.problem().mask(&pattern), &estimate()).unwrap(), mask)
    };
    let [q, k, v] = case.operands();
    let (exact, _) = case.formula(&q, &k, &v, &|_, _, query, key| mask[0][query / 8][key / 8]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (mut o, mut lse) = (vec![0f64; exact.len()], vec![0f64; 2 * 4 * case.queries]);
                for _ in 0..20 {
                    plan.run(AttentionArgs::new(&q, &k, &v, &mut o).lse(&mut lse)).unwrap();
                }
                assert_near(o, &exact);
            });
        }
    });
    assert!(format!("{plan:?}").starts_with("AttentionPlan { choice: "), "{plan:?}");
    let printed = format!("{:?}", AttentionArgs::new(&q, &k, &v, &mut [0f64; 3]).scale(0.5));
    assert!(printed.contains("o: 3, lse: None, scale: Some(0.5), softcap: 0.0"), "{printed}");
    assert!(format!("{:?}", case.problem()).contains("queries: 19"));
}

#[test]
fn tuned_once_then_from_the_store() {
    let context = context();
    let options = TuneOptions::new().budget(std::time::Duration::from_millis(100));
    let mask = Pattern::new(&context, (64, 64), (32, 32), &[0, 1, 2], &[0, 1]).unwrap();
    for problem in [Attention::new(64, 48, 32).heads(2), Attention::new(64, 64, 32).causal().mask(&mask)] {
        let report = context.tune_attention::<f32>(&problem, &options).unwrap();
        assert!(!report.from_store && report.chosen().unwrap().median_us > 0.0);
        let again = context.explain_attention::<f32>(&problem, &TuneOptions::new()).unwrap();
        assert!(again.from_store);
        assert_eq!(again.class_key, report.class_key);
        let plan = context.plan_attention::<f32>(&problem, &TuneOptions::new().fail_unknown()).unwrap();
        assert_eq!(plan.info().unwrap().kernel, report.chosen().unwrap().name);
        assert!(!context.list_attention::<f32>(&problem, &TuneOptions::new()).unwrap().candidates.is_empty());
    }
}
