// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline-dev/plumbline/internal/atomicfile"
)

// File is one file of a program.
type File struct {
	Name    string
	Content []byte
}

// WriteFiles replaces files of a folder, each at once, in their order. An error leaves the files behind the failed
// file as they were.
func WriteFiles(folder string, files ...File) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // the program may be another user
		return fmt.Errorf("writing the files of the program: %w", err)
	}
	for _, f := range files {
		if err := atomicfile.Replace(filepath.Join(folder, f.Name), f.Content, 0o644); err != nil {
			return fmt.Errorf("writing the files of the program: %w", err)
		}
	}
	return nil
}
