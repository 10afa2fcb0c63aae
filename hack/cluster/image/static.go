// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"fmt"
	"maps"
	"slices"
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

// machines are the architectures that images are made for, as ELF numbers them.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// CheckArchitecture fails for a binary that a node of this architecture, as Go names it,
// cannot run; the kubelet would only say "exec format error".
func CheckArchitecture(binary, architecture string) error {
	want, known := machines[architecture]
	if !known {
		return fmt.Errorf("architecture %q: images are made for %v", architecture, slices.Sorted(maps.Keys(machines)))
	}
	file, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("reading %s as an ELF binary: %w", binary, err)
	}
	defer func() { _ = file.Close() }() // only read
	if file.Machine != want {
		return fmt.Errorf("%s is for %s, want %s: build it with GOARCH=%s", binary, file.Machine, want, architecture)
	}
	return nil
}
