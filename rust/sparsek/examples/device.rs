//! Tunes and runs a product on a device through pointers and a stream, and compares it with the oracle.
//! Usage: device [cpu | cuda:0 ...]. Ends with an error where a result is wrong.
use sparsek::half::f16;
use sparsek::{
    Activation, Context, DeviceBuffer, Element, Error, Generate, Matrix, Pattern, Product, Sddmm, SddmmPointers, Spmm,
    SpmmArgs, SpmmPointers, TuneOptions, Tuning,
};
use std::ptr::null_mut;
use std::time::Duration;

const SIZE: usize = 1024;
const COLUMNS: usize = 256;

/// Multiplies on the device; the largest error relative to the largest element, and the kernel that was chosen.
fn spmm<A: Product<A>>(pattern: &Pattern, of: fn(f32) -> A, wide: fn(A) -> f64) -> Result<(f64, String), Error> {
    let context = pattern.context();
    let number = |i: usize| of((i * 7919 % 1009) as f32 / 1009.0 - 0.5);
    let values: Vec<A> = (0..pattern.values_len()).map(number).collect();
    let b: Vec<A> = (0..SIZE * COLUMNS).map(|i| number(i + 3)).collect();
    let mut d = vec![A::default(); SIZE * COLUMNS];
    let problem = Spmm::new(COLUMNS).activation(Activation::Relu);
    let exact = pattern.oracle_spmm(&problem, SpmmArgs::new(&values, &b, &mut d))?;

    let plan =
        pattern.plan_spmm::<A, A>(&problem, &TuneOptions::new().tuning(Tuning::Now).budget(Duration::from_secs(1)))?;
    let device_values = DeviceBuffer::from_slice(context, &values)?;
    let device_b = DeviceBuffer::from_slice(context, &b)?;
    let mut device_d = DeviceBuffer::from_slice(context, &d)?;
    let pointers = SpmmPointers::new(device_values.as_ptr(), device_b.as_ptr(), device_d.as_mut_ptr());
    // SAFETY: the buffers have the sizes of the problem and stay until the stream is done.
    unsafe {
        plan.run_pointers(&pointers, null_mut())?;
        context.synchronize(null_mut())?;
    }
    device_d.read(&mut d)?;
    let largest = exact.iter().fold(0f64, |most, x| most.max(x.abs()));
    let error = d.iter().zip(&exact).fold(0f64, |most, (&got, exact)| most.max((wide(got) - exact).abs()));
    Ok((error / largest, plan.info()?.choice))
}

/// All ones: every stored element is the inner size.
fn sddmm(pattern: &Pattern) -> Result<bool, Error> {
    let context = pattern.context();
    let plan = pattern.plan_sddmm::<f32, f32>(
        &Sddmm::new(64),
        &TuneOptions::new().tuning(Tuning::Now).budget(Duration::from_secs(1)),
    )?;
    let ones = DeviceBuffer::from_slice(context, &vec![1f32; SIZE * 64])?;
    let mut d = vec![0f32; pattern.values_len()];
    let mut device_d = DeviceBuffer::from_slice(context, &d)?;
    let pointers = SddmmPointers::new(ones.as_ptr(), ones.as_ptr(), device_d.as_mut_ptr());
    // SAFETY: as above.
    unsafe {
        plan.run_pointers(&pointers, null_mut())?;
        context.synchronize(null_mut())?;
    }
    device_d.read(&mut d)?;
    Ok(d.iter().all(|&x| x == 64.0))
}

fn report<A: Element>(result: (f64, String), limit: f64) -> bool {
    let (error, choice) = result;
    println!("{:?}: {choice}, error {error:.1e}, limit {limit:.1e}", A::DTYPE);
    error <= limit
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = std::env::args().nth(1).unwrap_or_else(|| "cpu".into());
    let context = Context::builder().device(device).store_in_memory().build()?;
    println!("{}", context.device()?.name);
    let matrix = Matrix::generate::<f32>(&context, Generate::Uniform, (SIZE, SIZE), (64, 64), 0.2, 1)?;
    let pattern = Pattern::from_matrix(&matrix)?;
    let mut good = report::<f32>(spmm::<f32>(&pattern, |x| x, f64::from)?, 1e-5);
    good &= report::<f16>(spmm::<f16>(&pattern, f16::from_f32, f16::to_f64)?, 2e-3);
    good &= sddmm(&pattern)?;
    // Slices are host memory, which a GPU does not read.
    let (b, mut d) = (vec![0f32; SIZE], vec![0f32; SIZE]);
    let slices = SpmmArgs::new(matrix.values()?, &b, &mut d);
    let on_host = context.device()?.kind == "cpu";
    good &= pattern.matmul(&Spmm::new(1), slices, &TuneOptions::new().estimate()).is_ok() == on_host;
    if good { Ok(()) } else { Err("a result is wrong".into()) }
}
