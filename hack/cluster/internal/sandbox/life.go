// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Alive reports whether the first process of the cluster with that life lock is
// running. It does not look at process numbers.
func Alive(lock string) (bool, error) {
	file, err := os.Open(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening the life lock: %w", err)
	}
	defer func() { _ = file.Close() }()
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("testing the life lock: %w", err)
	}
	return false, nil
}

// pollSlice is how long one poll(2) waits before the context is looked at.
const pollSlice = 50 * time.Millisecond

// Kill ends the process and waits until it has ended. For the first process of a
// cluster that means that every process of the cluster has ended: the kernel
// lets it end last. The caller must know from [Alive] that pid is still the
// first process.
func Kill(ctx context.Context, pid int) error {
	descriptor, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(descriptor) }()
	if err := unix.PidfdSendSignal(descriptor, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing process %d: %w", pid, err)
	}
	for ctx.Err() == nil {
		// A process descriptor becomes readable when the process has ended.
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}, int(pollSlice.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for process %d: %w", pid, err)
		}
		if ready > 0 {
			return nil
		}
	}
	return fmt.Errorf("waiting for process %d to end: %w", pid, ctx.Err())
}
