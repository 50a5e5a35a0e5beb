/* What cuDNN's double needs beside it, of CUDA 99: nothing but its name. */
int cudnn_needed_is_here;
