// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
		if err := replace(filepath.Join(folder, file.name), file.content); err != nil {
			return fmt.Errorf("writing HAProxy's files: %w", err)
		}
	}
	return nil
}

// replace has a file be there whole, before or after, also when the machine ends meanwhile.
func replace(path string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	err = errors.Join(err, next.Chmod(0o644), next.Sync(), next.Close()) //nolint:gosec // see write
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}
