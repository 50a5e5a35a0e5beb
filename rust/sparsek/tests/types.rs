//! Matrices of eight-bit elements, as files hold them.
use sparsek::half::{bf16, f16};
use sparsek::{Attention, AttentionArgs, AttentionBackwardArgs, Context, Dtype, Element, ErrorKind, Format, Layout};
use sparsek::{Matrix, Result, TuneOptions};
use std::path::{Path, PathBuf};

fn context() -> Context {
    Context::builder().store_in_memory().threads(1).build().unwrap()
}

/// A file of the repository's tests, which are not in the crate's package.
fn file(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/io");
    folder.exists().then(|| folder.join(name))
}

#[track_caller]
fn not_of<T: Element>(matrix: &Matrix) {
    let error = matrix.values::<T>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert_eq!(error.to_string(), format!("the values are {:?}, not {:?}", matrix.dtype(), T::DTYPE));
}

#[track_caller]
fn of_no_float(matrix: &Matrix) {
    not_of::<f32>(matrix);
    not_of::<f64>(matrix);
    not_of::<f16>(matrix);
    not_of::<bf16>(matrix);
}

#[test]
fn a_file_of_bytes_is_read() {
    let Some(path) = file("i1.npy") else { return };
    let context = context();
    let matrix = Matrix::read(&context, path).unwrap();
    assert_eq!((matrix.format(), matrix.dtype(), matrix.shape()), (Format::Dense, Dtype::I8, (3, 4)));
    let values = [-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5];
    assert_eq!(matrix.values::<i8>().unwrap(), values);
    of_no_float(&matrix);
    assert!(format!("{matrix:?}").contains("i8"), "{matrix:?}");
    assert_eq!(matrix.cast(Dtype::F32).unwrap().values::<f32>().unwrap(), values.map(f32::from));
    let blocks = matrix.transpose().unwrap().to_bsr((2, 3), Layout::RowMajor).unwrap();
    assert_eq!(blocks.values::<i8>().unwrap(), [-6, -2, 2, -5, -1, 3, -4, 0, 4, -3, 1, 5]);
}

#[test]
fn bytes_are_given() {
    let context = context();
    let matrix = Matrix::from_triplets(&context, (2, 2), &[1i32, 1], &[0, 0], &[100i8, 20]).unwrap();
    assert_eq!(matrix.dtype(), Dtype::I8);
    assert_eq!(matrix.canonicalize().unwrap().values::<i8>().unwrap(), [120]);
    let wide = Matrix::from_dense(&context, (1, 3), &[-128.4f64, 0.5, 3.0]).unwrap();
    assert_eq!(wide.cast(Dtype::I8).unwrap().values::<i8>().unwrap(), [-128, 0, 3]);
    let wider = Matrix::from_dense(&context, (1, 1), &[-1e9f64]).unwrap();
    assert!(wider.cast(Dtype::I8).unwrap_err().to_string().contains("i8 holds -128 to 127"));
}

#[test]
fn tensors_of_eight_bits_are_read() {
    let Some(path) = file("bsr_bytes.safetensors") else { return };
    let context = context();
    for (tensor, dtype, first) in [
        ("a", Dtype::F8E5M2, [2.5, -0.5, -0.5, 2.5, 0.5, 0.]),
        ("b", Dtype::F8E4M3, [1.5, 1., 1.5, 2.25, 2.25, 0.]),
        ("c", Dtype::I8, [-72., 0., 60., 60., -72., 56.]),
    ] {
        let matrix = Matrix::read_tensor(&context, &path, tensor).unwrap();
        assert_eq!((matrix.format(), matrix.dtype()), (Format::Bsr, dtype));
        assert_eq!((matrix.shape(), matrix.block()), ((5, 7), (2, 3)));
        of_no_float(&matrix);
        if dtype == Dtype::I8 {
            assert_eq!(matrix.values::<i8>().unwrap()[..6], first.map(|value| value as i8));
        } else {
            not_of::<i8>(&matrix);
        }
        let wide = matrix.cast(Dtype::F32).unwrap();
        let values = wide.values::<f32>().unwrap();
        assert_eq!((values.len(), &values[..6]), (24, &first[..]));
        let again = wide.cast(dtype).unwrap();
        assert_eq!(again.dtype(), dtype);
        assert_eq!(again.cast(Dtype::F32).unwrap().values::<f32>().unwrap(), values);
    }
}

/// The other products want a [`sparsek::Product`], which i8 is not.
#[test]
fn attention_refuses_bytes() {
    #[track_caller]
    fn refused<T>(result: Result<T>) {
        let error = result.err().expect("it must be refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("i8"), "{error}");
    }
    let (context, options, problem) = (context(), TuneOptions::new().estimate(), Attention::new(2, 2, 1));
    let (x, lse) = ([1i8; 2], [0f32; 2]);
    let mut o = [0i8; 2];
    refused(context.attention(&problem, AttentionArgs::new(&x, &x, &x, &mut o), &options));
    refused(context.oracle_attention(&problem, AttentionArgs::new(&x, &x, &x, &mut o)));
    refused(context.plan_attention::<i8>(&problem, &options));
    refused(context.explain_attention::<i8>(&problem, &options));
    let (problem, mut grads) = (problem.want_lse().backward(), [[0i8; 2]; 3]);
    let [grad_q, grad_k, grad_v] = &mut grads;
    let args = AttentionBackwardArgs::new([&x, &x, &x], (&x, &lse), &x, [grad_q, grad_k, grad_v]);
    refused(context.attention_backward(&problem, args, &options));
    refused(context.plan_attention_backward::<i8>(&problem, &options));
    assert_eq!((o, grads), ([0; 2], [[0; 2]; 3]));
}
