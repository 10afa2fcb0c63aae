// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ResidentBytes are the memory of a process that is resident now, and the most
// that ever was (Linux: VmRSS and VmHWM of /proc/<pid>/status).
func ResidentBytes(pid int) (now, peak int64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	for line := range bytes.Lines(raw) {
		key, rest, _ := bytes.Cut(line, []byte(":"))
		var into *int64
		switch string(key) {
		case "VmRSS":
			into = &now
		case "VmHWM":
			into = &peak
		default:
			continue
		}
		kib, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
		}
		*into = kib << 10
	}
	return now, peak, nil
}
