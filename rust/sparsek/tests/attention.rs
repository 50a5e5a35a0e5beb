//! Attention against the definition: bands, sinks, shared heads, layouts, masks of blocks, LSE, rows that see nothing,
//! packed sequences, key lengths, pages, tiles of bits, refusals.
mod common;
#[path = "attention/gradients.rs"]
mod gradients;

use common::{Number, assert_near, context, estimate, numbers};
use half::{bf16, f16};
use sparsek::{Attention, AttentionArgs, AttentionPlan, AttentionPointers, Diagonal, Element};
use sparsek::{Context, ErrorKind, Pattern, Result, TuneOptions, Tuning};

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
        problem = if self.softcap != 0.0 { problem.use_softcap() } else { problem };
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

    /// At once, from a plan and by pointers, beside the definition.
    #[track_caller]
    fn check<T: Number>(&self, context: &Context, problem: &Attention, mask: Mask)
    where
        T::Sum: Number,
    {
        let [q, k, v] = self.operands::<T>();
        self.check_arrays(context, problem, mask, [&q, &k, &v], [&q, &k, &v], Arrays::default());
    }

    /// The same of other operands. K and V as the formula has them: of all keys of all items, one behind the other.
    #[track_caller]
    fn check_arrays<T: Number>(
        &self,
        context: &Context,
        problem: &Attention,
        mask: Mask,
        given: [&[T]; 3],
        plain: [&[T]; 3],
        arrays: Arrays,
    ) where
        T::Sum: Number,
    {
        let (exact, exact_lse) = self.formula(plain[0], plain[1], plain[2], mask);
        let [q, k, v] = given;
        for way in 0..3 {
            let (mut o, mut lse) = (vec![T::of(9.0); exact.len()], vec![T::Sum::of(9.0); exact_lse.len()]);
            let args = arrays.given(AttentionArgs::new(q, k, v, &mut o)).lse(&mut lse).softcap(self.softcap);
            let args = if let Some(scale) = self.scale { args.scale(scale) } else { args };
            match way {
                0 => context.attention(problem, args, &estimate()).unwrap(),
                1 => context.plan_attention(problem, &estimate()).unwrap().run(args).unwrap(),
                _ => {
                    let mut pointers = AttentionPointers::new(q.as_ptr(), k.as_ptr(), v.as_ptr(), o.as_mut_ptr());
                    (pointers.scale, pointers.softcap, pointers.lse) = (self.scale, self.softcap, lse.as_mut_ptr());
                    (pointers.query_ends, pointers.key_ends) = (arrays.query_ends.as_ptr(), arrays.key_ends.as_ptr());
                    pointers.page_table = arrays.page_table.as_ptr();
                    (pointers.tile_numbers, pointers.tile_bits) = (arrays.tiles.0.as_ptr(), arrays.tiles.1.as_ptr());
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

/// What is read at every run.
#[derive(Clone, Copy, Default)]
struct Arrays<'a> {
    query_ends: &'a [i32],
    key_ends: &'a [i32],
    page_table: &'a [i32],
    tiles: (&'a [i32], &'a [u32]),
}

impl<'a> Arrays<'a> {
    fn given<T: Element>(&self, args: AttentionArgs<'a, T>) -> AttentionArgs<'a, T> {
        let args = args.query_ends(self.query_ends).key_ends(self.key_ends).page_table(self.page_table);
        args.tiles(self.tiles.0, self.tiles.1)
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
    refused(run(Attention::new(3, 4, 2).causal()), "diagonal = none");
    refused(run(Attention::new(3, 4, 2).window_right(2)), "diagonal = none");
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
    let args = |o| AttentionArgs::new(&[1f32], &[1.], &[1.], o).scale(f64::NAN);
    refused(context.attention(&Attention::new(1, 1, 1), args(&mut [0.]), &estimate()), "scale");
}

/// Where sequences of these lengths end.
fn ends(lengths: &[usize]) -> Vec<i32> {
    let mut end = 0;
    lengths.iter().map(|&length| ((end += length), end as i32).1).collect()
}

/// Rows for which `hidden` holds become NaN, of [heads, rows, depth].
fn spoiled<T: Number>(from: &[T], rows: usize, depth: usize, hidden: impl Fn(usize) -> bool) -> Vec<T> {
    let value = |(i, &value): (usize, &T)| if hidden(i / depth % rows) { T::of(f64::NAN) } else { value };
    from.iter().enumerate().map(value).collect()
}

const LENGTHS: [usize; 6] = [0, 1, 63, 64, 65, 0];

fn packed<T: Number>(queries: &[usize], keys: &[usize])
where
    T::Sum: Number,
{
    let context = context();
    let (query_ends, key_ends) = (ends(queries), ends(keys));
    let place = |ends: &[i32], row: usize| {
        let number = ends.partition_point(|&end| end as usize <= row);
        (number, row - if number > 0 { ends[number - 1] as usize } else { 0 })
    };
    let sized = Case { items: 1, heads_kv: 2, queries: queries.iter().sum(), keys: keys.iter().sum(), ..PLAIN };
    for by_rows in [false, true] {
        for diagonal in [Diagonal::TopLeft, Diagonal::BottomRight] {
            for (causal, left, right, sinks) in [(false, 0, 0, 0), (true, 0, 0, 0), (true, 9, 0, 2), (false, 4, 3, 0)] {
                let case = Case { causal, left, right, sinks, diagonal: Some(diagonal), by_rows, ..sized };
                let sees = |_: usize, _: usize, query: usize, key: usize| {
                    let ((number, query), (of, key)) = (place(&query_ends, query), place(&key_ends, key));
                    number == of && Case { queries: queries[of], keys: keys[of], ..case }.sees(query, key)
                };
                let plain = Case { causal: false, left: 0, right: 0, sinks: 0, ..case };
                let [q, k, v] = plain.operands::<T>();
                let arrays = Arrays { query_ends: &query_ends, key_ends: &key_ends, ..Arrays::default() };
                let problem = case.problem().sequences(queries.len());
                plain.check_arrays(&context, &problem, &sees, [&q, &k, &v], [&q, &k, &v], arrays);
            }
        }
    }
}

#[test]
fn packed_sequences() {
    packed::<f64>(&LENGTHS, &LENGTHS);
    packed::<f32>(&[3, 0, 70, 1, 2], &[5, 7, 64, 0, 130]);
    packed::<bf16>(&[65, 1], &[1, 129]);
}

#[test]
fn rows_behind_the_last_sequence_are_not_touched() {
    let context = context();
    let case = Case { items: 1, queries: 20, keys: 30, ..PLAIN };
    let [q, k, v] = case.operands::<f32>();
    let (q, k, v) =
        (spoiled(&q, 20, 16, |row| row >= 15), spoiled(&k, 30, 16, |r| r >= 9), spoiled(&v, 30, 16, |r| r >= 9));
    let (mut o, mut lse) = (vec![7f32; case.lengths()[3]], vec![7f32; 4 * 20]);
    let args = AttentionArgs::new(&q, &k, &v, &mut o).lse(&mut lse).query_ends(&[5, 15]).key_ends(&[4, 9]);
    context.attention(&case.problem().sequences(2), args, &estimate()).unwrap();
    for (row, lse) in lse.iter().enumerate() {
        let behind = row % 20 >= 15;
        assert_eq!(*lse == 7.0, behind);
        assert_eq!(o[row * 16..][..16].iter().all(|&o| o == 7.0), behind);
        assert!(lse.is_finite() && o[row * 16..][..16].iter().all(|o| o.is_finite()));
    }
}

#[test]
fn key_lengths() {
    let context = context();
    let lengths = [0, 1, 63, 64, 65, 70];
    for queries in [1, 9] {
        let sized = Case { items: 6, heads_kv: 2, queries, keys: 70, ..PLAIN };
        for (causal, left, sinks) in [(false, 0, 0), (true, 0, 0), (true, 20, 3)] {
            for diagonal in [Diagonal::TopLeft, Diagonal::BottomRight] {
                let case = Case { causal, left, sinks, diagonal: Some(diagonal), ..sized };
                let plain = Case { causal: false, left: 0, sinks: 0, ..case };
                let sees = |item: usize, _: usize, query: usize, key: usize| {
                    key < lengths[item] && Case { keys: lengths[item], ..case }.sees(query, key)
                };
                let [q, k, v] = plain.operands::<f64>();
                let hidden = |row: usize| row % 70 >= lengths[row / (70 * 2)];
                let (k, v) = (spoiled(&k, 6 * 2 * 70, 16, hidden), spoiled(&v, 6 * 2 * 70, 16, hidden));
                let ends: Vec<i32> = lengths.iter().map(|&length| length as i32).collect();
                let arrays = Arrays { key_ends: &ends, ..Arrays::default() };
                plain.check_arrays(&context, &case.problem().key_lengths(), &sees, [&q, &k, &v], [&q, &k, &v], arrays);
            }
        }
    }
}

/// Pages of 16 keys in another order, of [items, heads, keys, depth] or with rows of heads; all else of the pages is NaN.
fn paged<T: Number>(case: &Case, from: &[T], lengths: &[usize], table: &[i32], pages: usize) -> Vec<T> {
    let (heads, depth, each) = (case.heads_kv, case.depth, case.keys.div_ceil(16));
    let mut made = vec![T::of(f64::NAN); pages * 16 * heads * depth];
    for (item, &length) in lengths.iter().enumerate() {
        for (key, head) in (0..length).flat_map(|key| (0..heads).map(move |head| (key, head))) {
            let row = table[item * each + key / 16] as usize * 16 + key % 16;
            let to = if case.by_rows { row * heads + head } else { head * pages * 16 + row };
            let begin = case.at((item, head, key), heads, case.keys, depth);
            made[to * depth..][..depth].copy_from_slice(&from[begin..][..depth]);
        }
    }
    made
}

/// Page numbers of each list, in an order of no pattern; numbers of pages that no key is in are wrong.
fn table(lengths: &[usize], each: usize, pages: usize) -> Vec<i32> {
    let mut next = 0;
    let number = |i: usize| {
        if i % each * 16 >= lengths[i / each] {
            return -77;
        }
        next += 1;
        (next * 7 % pages) as i32
    };
    (0..lengths.len() * each).map(number).collect()
}

#[test]
fn pages_in_another_order() {
    let context = context();
    let lengths = [0, 1, 63, 64, 65, 70];
    let (table, pages) = (table(&lengths, 5, 23), 23);
    for by_rows in [false, true] {
        let case = Case { items: 6, heads_kv: 2, queries: 3, keys: 70, by_rows, ..PLAIN };
        let [q, k, v] = case.operands::<f32>();
        let (of_k, of_v) = (paged(&case, &k, &lengths, &table, pages), paged(&case, &v, &lengths, &table, pages));
        let sees = |item: usize, _: usize, _: usize, key: usize| key < lengths[item];
        let ends: Vec<i32> = lengths.iter().map(|&length| length as i32).collect();
        let arrays = Arrays { key_ends: &ends, page_table: &table, ..Arrays::default() };
        let problem = case.problem().pages(16, pages).key_lengths();
        case.check_arrays(&context, &problem, &sees, [&q, &of_k, &of_v], [&q, &k, &v], arrays);
    }
    // All keys of all items.
    let case = Case { items: 2, queries: 3, keys: 35, ..PLAIN };
    let [q, k, v] = case.operands::<f64>();
    let table = [4, 0, 2, 5, 1, 3];
    let (of_k, of_v) = (paged(&case, &k, &[35, 35], &table, 6), paged(&case, &v, &[35, 35], &table, 6));
    let arrays = Arrays { page_table: &table, ..Arrays::default() };
    case.check_arrays(&context, &case.problem().pages(16, 6), UNMASKED, [&q, &of_k, &of_v], [&q, &k, &v], arrays);
}

#[test]
fn packed_sequences_with_pages() {
    let context = context();
    let (queries, keys) = ([1, 7, 0, 2], [65, 16, 3, 0]);
    let (table, pages) = (table(&keys, 5, 11), 11);
    let case = Case { items: 1, heads_kv: 2, queries: 10, keys: 4 * 70, ..PLAIN }; // the formula's keys: 70 for each sequence
    let [q, k, v] = case.operands::<f32>();
    let of_sequences = Case { items: 4, keys: 70, ..case };
    let by_sequence = |from: &[f32]| -> Vec<f32> {
        let row = |i: usize| (i / 16 / 70 / 2 * 70 + i / 16 % 70) + i / 16 / 70 % 2 * 280;
        (0..4 * 2 * 70 * 16).map(|i| from[row(i) * 16 + i % 16]).collect()
    };
    let of_k = paged(&of_sequences, &by_sequence(&k), &keys, &table, pages);
    let of_v = paged(&of_sequences, &by_sequence(&v), &keys, &table, pages);
    let query_ends = ends(&queries);
    let sees = |_: usize, _: usize, query: usize, key: usize| {
        let number = query_ends.partition_point(|&end| end as usize <= query);
        number == key / 70 && key % 70 < keys[number]
    };
    let key_ends: Vec<i32> = keys.iter().map(|&keys| keys as i32).collect();
    let arrays = Arrays { query_ends: &query_ends, key_ends: &key_ends, page_table: &table, ..Arrays::default() };
    let problem = Case { keys: 70, ..case }.problem().sequences(4).pages(16, pages);
    case.check_arrays(&context, &problem, &sees, [&q, &of_k, &of_v], [&q, &k, &v], arrays);
}

#[test]
fn tiles_of_bits() {
    let context = context();
    for block in [(8, 8), (5, 40), (16, 33), (1, 32)] {
        for (of_heads, of_items) in [(1, 1), (2, 1), (4, 2)] {
            let case = Case { heads_kv: 2, keys: 90, causal: true, diagonal: Some(Diagonal::BottomRight), ..PLAIN };
            let (pattern, mask) = lists(&context, &case, block, of_heads * of_items);
            let words = block.1.div_ceil(32);
            let numbers: Vec<i32> = (0..pattern.nnzb()).map(|i| (i * 5 % 4) as i32 - 1).collect();
            let bits: Vec<u32> = (0..3 * block.0 * words).map(|i| (i as u32 + 1).wrapping_mul(2654435761)).collect();
            let rows: Vec<&Vec<bool>> = mask.iter().flatten().collect();
            let before = |row: usize, col: usize| {
                let above = rows[..row].iter().flat_map(|row| row.iter()).filter(|&&stored| stored).count();
                above + rows[row][..col].iter().filter(|&&stored| stored).count()
            };
            let sees = |item: usize, head: usize, query: usize, key: usize| {
                let list = if of_items > 1 { item } else { 0 } * of_heads + head / (4 / of_heads);
                let (row, col) = (query / block.0, key / block.1);
                if !mask[list][row][col] {
                    return false;
                }
                let number = numbers[before(list * mask[list].len() + row, col)];
                let word = (number.max(0) as usize * block.0 + query % block.0) * words + key % block.1 / 32;
                number < 0 || bits[word] >> (key % block.1 % 32) & 1 == 1
            };
            let problem = case.problem().mask_lists(&pattern, of_heads, of_items).tiles(3);
            let [q, k, v] = case.operands::<f64>();
            let arrays = Arrays { tiles: (&numbers, &bits), ..Arrays::default() };
            case.check_arrays(&context, &problem, &sees, [&q, &k, &v], [&q, &k, &v], arrays);
        }
    }
}

#[test]
fn wrong_numbers_are_refused() {
    let context = context();
    let mask = Pattern::new(&context, (4, 6), (2, 3), &[0, 1, 3], &[0, 0, 1]).unwrap();
    let run = |problem: &Attention, arrays: Arrays| {
        let (one, mut o) = (vec![1f32; 64], vec![0f32; 64]);
        let plan = context.plan_attention::<f32>(problem, &estimate())?;
        let by_plan = plan.run(arrays.given(AttentionArgs::new(&one, &one, &one, &mut o)));
        let at_once =
            context.attention(problem, arrays.given(AttentionArgs::new(&one, &one, &one, &mut o)), &estimate());
        let oracle = context.oracle_attention(problem, arrays.given(AttentionArgs::new(&one, &one, &one, &mut o)));
        assert_eq!(by_plan.is_ok(), at_once.is_ok());
        assert_eq!(by_plan.is_ok(), oracle.is_ok());
        at_once
    };
    let none = Arrays::default();
    let packed = Attention::new(4, 6, 2).sequences(2);
    let of = |query_ends, key_ends| Arrays { query_ends, key_ends, ..none };
    run(&packed, of(&[1, 4], &[6, 6])).unwrap();
    refused(run(&packed, none), "query_ends has 0 elements: the problem needs 2");
    refused(run(&packed, of(&[4], &[6, 6])), "query_ends has 1 elements: the problem needs 2");
    refused(run(&packed, of(&[1, 4], &[6])), "key_ends has 1 elements: the problem needs 2");
    refused(run(&packed, of(&[1, 5], &[6, 6])), "query_ends[1] = 5: the sequence begins at 1, and there are 4 queries");
    refused(run(&packed, of(&[3, 2], &[6, 6])), "query_ends[1] = 2: the sequence begins at 3");
    refused(run(&packed, of(&[-1, 4], &[6, 6])), "query_ends[0] = -1");
    refused(run(&packed, of(&[1, 4], &[6, 7])), "key_ends[1] = 7: the sequence begins at 6, and there are 6 keys");
    refused(run(&Attention::new(4, 6, 2).batch(2).sequences(2), none), "batch = 2 with sequences = 2");
    refused(run(&Attention::new(4, 4, 2).sequences(2).causal(), none), "diagonal = none");

    let lengths = Attention::new(1, 6, 2).batch(2).key_lengths();
    run(&lengths, of(&[], &[6, 0])).unwrap();
    run(&lengths, of(&[9, 9, 9], &[6, 0])).unwrap(); // nobody asks for the others
    refused(run(&lengths, of(&[], &[6])), "key_ends has 1 elements: the problem needs 2");
    refused(run(&lengths, of(&[], &[6, 7])), "key_ends[1] = 7: the limits are 0 and keys = 6");
    refused(run(&lengths, of(&[], &[-1, 6])), "key_ends[0] = -1");

    let pages = Attention::new(1, 6, 2).batch(2).pages(4, 3);
    let of = |page_table| Arrays { page_table, ..none };
    run(&pages, of(&[0, 1, 2, 2])).unwrap();
    refused(run(&pages, of(&[0, 1, 2])), "page_table has 3 elements: the problem needs 4");
    refused(run(&pages, of(&[0, 1, 2, 3])), "page_table[3] = 3: the limits are 0 and pages - 1 = 2");
    refused(run(&pages, of(&[-1, 1, 2, 2])), "page_table[0] = -1");
    refused(run(&Attention::new(1, 6, 2).pages(4, 0), none), "page_keys = 4 with pages = 0");
    refused(run(&Attention::new(1, 6, 2).pages(0, 4), none), "page_keys = 0 with pages = 4");
    refused(run(&Attention::new(1, 6, 2).batch(2).pages(4, 3).stride_k(24), none), "stride_k = 24");
    let (short, mut o) = (vec![1f32; 23], vec![0f32; 4]);
    let args = AttentionArgs::new(&short[..4], &short, &short, &mut o).page_table(&[0, 1, 2, 2]);
    refused(context.attention(&pages, args, &estimate()), "k has 23 elements: the problem needs 24");

    let tiles = Attention::new(4, 6, 2).mask(&mask).tiles(2);
    let of = |numbers, bits| Arrays { tiles: (numbers, bits), ..none };
    run(&tiles, of(&[-1, 0, 1], &[7; 4])).unwrap();
    refused(run(&tiles, of(&[-1, 0], &[7; 4])), "tile_numbers has 2 elements: the problem needs 3");
    refused(run(&tiles, of(&[-1, 0, 1], &[7; 3])), "tile_bits has 3 elements: the problem needs 4");
    refused(run(&tiles, of(&[-1, 0, 2], &[7; 4])), "tile_numbers[2] = 2: the limits are -1 and tiles - 1 = 1");
    refused(run(&tiles, of(&[-2, 0, 1], &[7; 4])), "tile_numbers[0] = -2");
    refused(run(&Attention::new(4, 6, 2).tiles(2), none), "tiles = 2: there is no pattern");

    for huge in [usize::MAX, usize::MAX / 2, 1 << 62, 1 << 40] {
        for problem in [
            Attention::new(4, 6, 2).sequences(huge),
            Attention::new(4, 6, 2).pages(huge, 1),
            Attention::new(4, 6, 2).pages(1, huge),
            Attention::new(4, 6, 2).pages(huge, huge),
            Attention::new(4, 6, 2).batch(huge).key_lengths(),
            Attention::new(4, 6, 2).mask(&mask).tiles(huge),
        ] {
            let (one, mut o) = (vec![1f32; 64], vec![0f32; 64]);
            let args = AttentionArgs::new(&one, &one, &one, &mut o).query_ends(&[4]).key_ends(&[6]).page_table(&[0; 6]);
            assert!(context.attention(&problem, args.tiles(&[0; 3], &[0; 6]), &estimate()).is_err(), "{problem:?}");
        }
    }
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
    let options = TuneOptions::new().tuning(Tuning::Now).budget(std::time::Duration::from_millis(100));
    let mask = Pattern::new(&context, (64, 64), (32, 32), &[0, 1, 2], &[0, 1]).unwrap();
    for problem in [Attention::new(64, 48, 32).heads(2), Attention::new(64, 64, 32).causal().mask(&mask)] {
        let report = context.tune_attention::<f32>(&problem, &options).unwrap();
        assert!(!report.from_store && report.chosen().unwrap().median_us > 0.0);
        let again = context.explain_attention::<f32>(&problem, &TuneOptions::new()).unwrap();
        assert!(again.from_store);
        assert_eq!(again.class_key, report.class_key);
        let plan = context.plan_attention::<f32>(&problem, &TuneOptions::new().tuning(Tuning::AheadEach)).unwrap();
        assert_eq!(plan.info().unwrap().kernel, report.chosen().unwrap().name);
        assert!(!context.list_attention::<f32>(&problem, &TuneOptions::new()).unwrap().candidates.is_empty());
    }
}

/// The page has what the documentation of `Attention` has, where it is compiled and run. It is not in the crate's package.
#[test]
fn the_page_shows_what_is_compiled() {
    let crate_folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(page) = std::fs::read_to_string(crate_folder.join("../../docs/attention.md")) else { return };
    let source = std::fs::read_to_string(crate_folder.join("src/attention/mod.rs")).unwrap();
    let compiled: String =
        source.lines().filter_map(|line| line.strip_prefix("/// ")).map(|line| format!("{line}\n")).collect();
    let examples: Vec<&str> = page.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let example = example.strip_prefix("let context = Context::builder().build()?;\n").unwrap_or(example);
        assert!(compiled.contains(example), "{example}");
    }
}
