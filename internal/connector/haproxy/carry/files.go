// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/internal/connector/reload"
)

// writeFiles replaces the files of a folder, the configuration last. A program that starts in between has the
// configuration of before, whose splits are in the configuration as well.
func writeFiles(folder string, files haproxy.Files) error {
	return reload.WriteFiles(folder,
		reload.File{Name: haproxy.MatchesFile, Content: files.Matches},
		reload.File{Name: haproxy.SplitsFile, Content: files.Splits},
		reload.File{Name: haproxy.ConfigFile, Content: files.Config})
}
