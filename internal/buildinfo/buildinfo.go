// SPDX-License-Identifier: Apache-2.0

// Package buildinfo tells the version of the running binary. A release stamps the
// version and the commit with the linker; the Go toolchain's record serves all other
// builds.
package buildinfo

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version and revision are set by `make release`, with -ldflags "-X …/buildinfo.version=v0.1.0".
var version, revision string

// Unstamped is the version of a binary that no release built.
const Unstamped = "(devel)"

// Info identifies a build.
type Info struct {
	// Version is that of the release, as v0.1.0; [Unstamped] or a pseudo-version of Go
	// for other builds.
	Version string
	// Revision is the commit; "unknown" if the build does not record one.
	Revision string
	// GoVersion is that of the toolchain.
	GoVersion string
}

// Read returns the version of the running binary.
func Read() Info {
	recorded, _ := debug.ReadBuildInfo()
	return read(version, revision, recorded)
}

// read prefers the stamps of the linker; recorded is nil without the toolchain's record.
func read(version, revision string, recorded *debug.BuildInfo) Info {
	info := Info{Version: version, Revision: revision, GoVersion: runtime.Version()}
	if recorded != nil {
		info.Version = cmp.Or(info.Version, recorded.Main.Version)
		for _, s := range recorded.Settings {
			if s.Key == "vcs.revision" {
				info.Revision = cmp.Or(info.Revision, s.Value)
			}
		}
	}
	info.Version, info.Revision = cmp.Or(info.Version, Unstamped), cmp.Or(info.Revision, "unknown")
	return info
}

// PrintVersion answers a command line that consists of --version alone, and reports
// whether it did.
func PrintVersion(args []string, program string, out io.Writer) (answered bool, err error) {
	if len(args) != 1 || args[0] != "--version" && args[0] != "-version" {
		return false, nil
	}
	info := Read()
	if _, err := fmt.Fprintf(out, "%s %s (commit %s, %s)\n", program, info.Version, info.Revision, info.GoVersion); err != nil {
		return true, fmt.Errorf("printing the version: %w", err)
	}
	return true, nil
}
