// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"os"
	"syscall"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// hasRoom asks the file system whether the largest record would fit. A file system that
// counts no blocks is not asked: the probe tells.
func hasRoom(dir string) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return os.NewSyscallError("statfs", err)
	}
	if fs.Blocks > 0 && fs.Bavail < evidence.MaxEnvelope/uint64(max(fs.Bsize, 1))+1 {
		return os.NewSyscallError("statfs", syscall.ENOSPC)
	}
	return nil
}
