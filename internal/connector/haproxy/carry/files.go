// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline-dev/plumbline/internal/atomicfile"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy"
)

// write replaces the files of a folder, each at once, the configuration last. A program that starts in
// between has the configuration of before, whose splits are in the configuration as well.
func write(folder string, files haproxy.Files) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // the program may be another user
		return fmt.Errorf("writing HAProxy's files: %w", err)
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{haproxy.MatchesFile, files.Matches}, {haproxy.SplitsFile, files.Splits}, {haproxy.ConfigFile, files.Config}} {
		if err := atomicfile.Replace(filepath.Join(folder, file.name), file.content, 0o644); err != nil {
			return fmt.Errorf("writing HAProxy's files: %w", err)
		}
	}
	return nil
}
