// SPDX-License-Identifier: Apache-2.0
//! A safe wrapper of the few functions of bmrt.h that a program needs. Errors are the messages of the library.
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_void};

#[repr(C)]
struct Status {
    code: i32,
    line: i32,
    file: *const c_char,
    message: [c_char; 496],
}

#[link(name = "bmrt")]
extern "C" {
    fn bmrt_model_open(path: *const c_char, options: *const c_void, out: *mut *mut c_void, status: *mut Status) -> i32;
    fn bmrt_model_release(model: *mut c_void);
    fn bmrt_context_create(model: *mut c_void, options: *const c_void, out: *mut *mut c_void, status: *mut Status) -> i32;
    fn bmrt_context_destroy(context: *mut c_void);
    fn bmrt_context_bind_input(context: *mut c_void, input: u32, data: *const c_void, bytes: u64, status: *mut Status) -> i32;
    fn bmrt_context_bind_output(context: *mut c_void, output: u32, data: *mut c_void, bytes: u64, status: *mut Status) -> i32;
    fn bmrt_context_run(context: *mut c_void, status: *mut Status) -> i32;
}

fn check(call: impl FnOnce(*mut Status) -> i32) -> Result<(), String> {
    let mut status = Status { code: 0, line: 0, file: std::ptr::null(), message: [0; 496] };
    if call(&mut status) == 0 {
        return Ok(());
    }
    // The message is always terminated.
    Err(unsafe { CStr::from_ptr(status.message.as_ptr()) }.to_string_lossy().into_owned())
}

/// One net of one file, with its own memory.
pub struct Net(*mut c_void);

// A context may be used by any thread, but only by one at a time: Send, but not Sync.
unsafe impl Send for Net {}

impl Net {
    pub fn open(path: &str) -> Result<Net, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        let (mut model, mut context) = (std::ptr::null_mut(), std::ptr::null_mut());
        check(|status| unsafe { bmrt_model_open(path.as_ptr(), std::ptr::null(), &mut model, status) })?;
        let created = check(|status| unsafe { bmrt_context_create(model, std::ptr::null(), &mut context, status) });
        unsafe { bmrt_model_release(model) }; // the context keeps its own reference
        created.map(|_| Net(context))
    }

    /// Runs a net of one input and one output; the library checks both lengths.
    pub fn run(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), String> {
        let (from, to) = (input.as_ptr().cast(), output.as_mut_ptr().cast());
        let bytes = |values: usize| (values * std::mem::size_of::<f32>()) as u64;
        check(|status| unsafe { bmrt_context_bind_input(self.0, 0, from, bytes(input.len()), status) })?;
        check(|status| unsafe { bmrt_context_bind_output(self.0, 0, to, bytes(output.len()), status) })?;
        check(|status| unsafe { bmrt_context_run(self.0, status) })
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        unsafe { bmrt_context_destroy(self.0) }
    }
}
