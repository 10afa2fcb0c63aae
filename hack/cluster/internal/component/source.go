// SPDX-License-Identifier: Apache-2.0

package component

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/mod/modfile"
)

// ownVersion is the version of components that are our own few lines: their
// cache name changes with their source anyway.
const ownVersion = "v0"

// keyLength is the number of hexadecimal digits of the source digest in a cache
// name: 48 bits, far beyond the handful of names that one cache ever holds.
const keyLength = 12

// Target is what a build is made for and with.
type Target struct {
	OS, Arch  string
	GoVersion string // as runtime.Version reports it
}

// Source is a component with the version and digest of the files that pin it.
type Source struct {
	Component
	Version string // of Module or Wheel, for example "v1.37.2"
	digest  string
	pinned  map[string]bool // the machines that Wheel is pinned for
}

// Load reads the component's folder from components, the tree that holds one
// folder per component, and returns its version and digest.
// It fails when go.mod is absent, malformed, or does not require c.Module, and
// likewise for the pins of c.Wheel.
func Load(components fs.FS, c Component) (Source, error) {
	source := Source{Component: c}
	var err error
	switch {
	case c.Environment:
		source.Version, source.pinned, err = environmentPins(components, c)
	case c.Wheel != "":
		source.Version, source.pinned, err = wheelPins(components, c)
	default:
		source.Version, err = moduleVersion(components, c)
	}
	if err != nil {
		return Source{}, fmt.Errorf("reading the module of component %s: %w", c.Name, err)
	}
	if source.digest, err = sourceDigest(components, c.Name); err != nil {
		return Source{}, fmt.Errorf("reading the source of component %s: %w", c.Name, err)
	}
	return source, nil
}

func moduleVersion(components fs.FS, c Component) (string, error) {
	name := path.Join(c.Name, "go.mod")
	data, err := fs.ReadFile(components, name)
	if err != nil {
		return "", err
	}
	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		return "", err
	}
	if c.Module == "" {
		return ownVersion, nil
	}
	for _, r := range file.Require {
		if r.Mod.Path == c.Module {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", name, c.Module)
}

// sourceDigest covers every file that can change the build: go.mod, go.sum, Go
// files and the pins of a wheel. fs.WalkDir goes in lexical order, so equal trees give equal digests.
func sourceDigest(components fs.FS, folder string) (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(components, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isSource(name) {
			return err
		}
		data, err := fs.ReadFile(components, name)
		if err != nil {
			return err
		}
		// The length keeps two files apart whose concatenation is the same.
		fmt.Fprintf(hash, "%s\x00%d\x00", name, len(data))
		hash.Write(data)
		return nil
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

func isSource(name string) bool {
	base := path.Base(name)
	if strings.HasSuffix(base, "_test.go") {
		return false
	}
	return base == "go.mod" || base == "go.sum" || base == Requirements || path.Ext(base) == ".go"
}

// CacheName is the folder name of the built component: NAME-VERSION-HASH, where
// the hash covers its source, its compile flags and the target. Whatever changes
// the binaries changes the name, so a folder that exists is never stale.
func (s Source) CacheName(t Target) string {
	hash := sha256.New()
	if s.Wheel != "" {
		t.GoVersion = "" // nothing is compiled
	}
	fmt.Fprintf(hash, "%s\x00%s\x00%s\x00%s\x00", s.digest, t.OS, t.Arch, t.GoVersion)
	for _, b := range s.Binaries {
		recipe := []string{b.Package, b.Name}
		if s.Wheel == "" {
			recipe = s.BuildArguments(b, "")
		}
		fmt.Fprintf(hash, "%q %q\x00", recipe, b.Links)
	}
	if s.Libraries != "" {
		fmt.Fprintf(hash, "%q\x00", s.Libraries)
	}
	if s.Environment {
		fmt.Fprint(hash, "environment\x00")
	}
	return fmt.Sprintf("%s-%s-%s", s.Name, s.Version, hex.EncodeToString(hash.Sum(nil))[:keyLength])
}

// WithoutDebugInformation keeps the compiler from making debug information, which the
// linker would drop. That takes a fifth of the compiler's time.
const WithoutDebugInformation = "-gcflags=all=-dwarf=false"

// BuildArguments is the argument list of the go command that compiles b to the
// file out. It must run in the component's folder with [BuildEnvironment].
func (s Source) BuildArguments(b Binary, out string) []string {
	arguments := []string{"build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false", WithoutDebugInformation}
	if len(s.Tags) > 0 {
		arguments = append(arguments, "-tags="+strings.Join(s.Tags, ","))
	}
	return append(arguments, "-ldflags="+s.linkerFlags(), "-o", out, b.Package)
}

func (s Source) linkerFlags() string {
	flags := []string{"-s", "-w"}
	if s.Stamps != nil {
		for _, stamp := range s.Stamps(s.Version) {
			flags = append(flags, "-X", stamp.Variable+"="+stamp.Value)
		}
	}
	return strings.Join(flags, " ")
}

// BuildEnvironment is what must be set for the go command: no C, so that the
// binaries are static and run in an image of nothing else, and no workspace, so
// that a developer's go.work cannot change a version.
func BuildEnvironment(t Target) []string {
	return []string{"CGO_ENABLED=0", "GOOS=" + t.OS, "GOARCH=" + t.Arch, "GOWORK=off", "GOFLAGS="}
}
