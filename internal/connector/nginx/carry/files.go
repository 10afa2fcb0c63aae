// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/internal/connector/reload"
)

// writeFiles replaces the files of a folder, the one with the rules last.
func writeFiles(folder string, files nginx.Files) error {
	return reload.WriteFiles(folder,
		reload.File{Name: nginx.MainFile, Content: files.Main},
		reload.File{Name: nginx.RequestFile, Content: files.Request},
		reload.File{Name: nginx.ConfigFile, Content: files.Config})
}

// copyUser makes a folder with the user's main configuration in which our files are those of the folder
// checked. All else of the user's folder is linked, since nginx finds files by the folder of the main one.
func copyUser(user, folder, checked string) (copied string, err error) {
	text, err := os.ReadFile(user) //nolint:gosec // the path is of the agent's configuration
	if err != nil {
		return "", fmt.Errorf("copying nginx's configuration: %w", err)
	}
	if !strings.Contains(string(text), filepath.Join(folder, nginx.ConfigFile)) {
		return "", fmt.Errorf("copying nginx's configuration: %s does not include %s", user, filepath.Join(folder, nginx.ConfigFile))
	}
	copies := filepath.Join(checked, "user")
	if err := errors.Join(os.RemoveAll(copies), os.MkdirAll(copies, 0o700)); err != nil {
		return "", fmt.Errorf("copying nginx's configuration: %w", err)
	}
	entries, err := os.ReadDir(filepath.Dir(user))
	if err != nil {
		return "", fmt.Errorf("copying nginx's configuration: %w", err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(user) {
			err = errors.Join(err, os.Symlink(filepath.Join(filepath.Dir(user), e.Name()), filepath.Join(copies, e.Name())))
		}
	}
	copied = filepath.Join(copies, filepath.Base(user))
	ours := strings.NewReplacer(
		filepath.Join(folder, nginx.ConfigFile), filepath.Join(checked, nginx.ConfigFile),
		filepath.Join(folder, nginx.MainFile), filepath.Join(checked, nginx.MainFile),
		filepath.Join(folder, nginx.RequestFile), filepath.Join(checked, nginx.RequestFile))
	if err := errors.Join(err, os.WriteFile(copied, []byte(ours.Replace(string(text))), 0o600)); err != nil {
		return "", fmt.Errorf("copying nginx's configuration: %w", err)
	}
	return copied, nil
}
