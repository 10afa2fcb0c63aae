// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"fmt"
)

// DynamicError refuses a binary that asks for a loader the image does not have;
// the kubelet would only say "no such file or directory" about the binary itself.
type DynamicError struct {
	Binary string
	Loader string
}

func (e *DynamicError) Error() string {
	return fmt.Sprintf("%s needs the loader %s, which the image does not have: build it with CGO_ENABLED=0", e.Binary, e.Loader)
}

// CheckStatic returns a *DynamicError for a dynamically linked ELF binary, and an
// error for a file that is no ELF binary at all.
func CheckStatic(binary string) error {
	file, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("reading %s as an ELF binary: %w", binary, err)
	}
	defer func() { _ = file.Close() }() // only read
	for _, segment := range file.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		loader := make([]byte, min(segment.Filesz, 256))
		if _, err := segment.ReadAt(loader, 0); err != nil {
			return fmt.Errorf("reading the loader's name in %s: %w", binary, err)
		}
		return &DynamicError{Binary: binary, Loader: string(loader[:max(0, len(loader)-1)])}
	}
	return nil
}
