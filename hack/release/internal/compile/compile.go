// SPDX-License-Identifier: Apache-2.0

// Package compile compiles the commands of a release for each platform. Equal source and
// an equal toolchain give equal bytes: no path, no identifier of the build, no C.
package compile

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Plugin is the command that people install; the others run in images.
const Plugin = "kubectl-plumbline"

// Images are the commands that have an image of their own.
func Images() []string { return []string{"agent", "assessor", "redirect", "webhook", "xds"} }

// Platform is an operating system and an architecture, as Go names them.
type Platform struct{ OS, Architecture string }

func (p Platform) String() string { return p.OS + "/" + p.Architecture }

// ImagePlatforms are the platforms of the images.
func ImagePlatforms() []Platform { return []Platform{{"linux", "amd64"}, {"linux", "arm64"}} }

// PluginPlatforms are the platforms of the plugin.
func PluginPlatforms() []Platform {
	return append(ImagePlatforms(), Platform{"darwin", "amd64"}, Platform{"darwin", "arm64"}, Platform{"windows", "amd64"})
}

// Commands are those of one platform.
func Commands(p Platform) []string {
	if p.OS == "linux" {
		return append(Images(), Plugin)
	}
	return []string{Plugin}
}

// Folder is that of a platform below the folder that [Go.Compile] fills.
func Folder(folder string, p Platform) string {
	return filepath.Join(folder, p.OS+"_"+p.Architecture)
}

// Binary is the file of a command below the folder that [Go.Compile] fills.
func Binary(folder string, p Platform, command string) string {
	if p.OS == "windows" {
		command += ".exe"
	}
	return filepath.Join(Folder(folder, p), command)
}

// Go compiles with the go command.
type Go struct {
	// Root is the repository.
	Root string
	// Version and Revision are stamped into each binary.
	Version, Revision string
	// Progress is told what the go command says.
	Progress io.Writer
}

const stamps = "github.com/plumbline-dev/plumbline/internal/buildinfo"

// Compile writes the commands of one platform to their places below folder, see [Binary].
func (g Go) Compile(ctx context.Context, p Platform, folder string, commands ...string) error {
	into := Folder(folder, p)
	if err := os.MkdirAll(into, 0o755); err != nil {
		return fmt.Errorf("creating the folder of %s: %w", p, err)
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		// As in the Makefile, so that both share what they compiled.
		"-gcflags=all=-dwarf=false",
		fmt.Sprintf("-ldflags=-s -w -buildid= -X %s.version=%s -X %s.revision=%s", stamps, g.Version, stamps, g.Revision),
		"-o", into + string(filepath.Separator)}
	for _, command := range commands {
		args = append(args, "./cmd/"+command)
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Stdout, command.Stderr = g.Root, g.Progress, g.Progress
	command.Env = append(os.Environ(), Environment(p)...)
	if err := command.Run(); err != nil {
		return fmt.Errorf("compiling %s for %s: %w; the messages above say where", strings.Join(commands, ", "), p, err)
	}
	return nil
}

// Environment is that of the go command: settings of this machine must not change a byte.
func Environment(p Platform) []string {
	return []string{"GOOS=" + p.OS, "GOARCH=" + p.Architecture, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0"}
}
