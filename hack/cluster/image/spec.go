// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// NonRoot is the user and group that images run as, the number that distroless
// images use. It is a number because Pod Security "restricted" cannot tell that
// a name is not root.
const NonRoot = 65532

// Entry is one file or folder of an image. Folders above it are added as needed.
type Entry struct {
	Path   string      // in the image, absolute
	Source string      // file on this machine; "" means Data
	Data   []byte      // content when Source is ""
	Folder bool        // an empty folder
	Link   string      // target of a symbolic link; excludes the others
	Mode   fs.FileMode // permission bits; 0 means 0644, or 0755 for a folder
	Owner  int         // user and group
}

// Spec describes an image.
type Spec struct {
	Tag        string // full name, for example docker.io/plumbline/webhook:dev
	Entries    []Entry
	Entrypoint []string
	Cmd        []string
	Env        []string
	WorkingDir string
	User       int // user and group; 0 is root
	// Architecture as Go names it; empty is this machine's.
	Architecture string
	// Created is zero for an image that never leaves this machine: 1970 then.
	Created time.Time
	Labels  map[string]string
	// Compressed is for images of a registry. Those that are unpacked once, on this
	// machine, are better without.
	Compressed bool
}

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Base is what every image of ours has: the names of the users, and a folder for
// temporary files that anybody may write to.
func Base() []Entry {
	passwd := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/:/sbin/nologin\n", NonRoot, NonRoot)
	group := fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", NonRoot)
	return []Entry{
		{Path: "/etc/passwd", Data: []byte(passwd)},
		{Path: "/etc/group", Data: []byte(group)},
		{Path: "/tmp", Folder: true, Mode: fs.ModeSticky | 0o777},
	}
}

// Static describes the image of a static binary, which becomes /NAME.
func Static(name, binary, tag string, extra []Entry) Spec {
	entries := append(Base(), Entry{Path: "/" + name, Source: binary, Mode: 0o755})
	return Spec{
		Tag:        tag,
		Entries:    append(entries, extra...),
		Entrypoint: []string{"/" + name},
		Env:        []string{searchPath},
		WorkingDir: "/",
		User:       NonRoot,
	}
}

// Redis describes the image of this machine's redis-server with the libraries
// that it and redis-cli load. It keeps nothing on disk unless told otherwise.
func Redis(tag string, libraries []string) Spec {
	entries := append(Base(),
		// Debian's redis-server is a link; the program looks at the name it is called by.
		Entry{Path: redisServer, Source: redisServer, Mode: 0o755},
		Entry{Path: redisClient, Source: redisClient, Mode: 0o755},
		Entry{Path: "/data", Folder: true, Owner: NonRoot},
	)
	return Spec{
		Tag:        tag,
		Entries:    append(entries, libraryEntries(libraries)...),
		Entrypoint: []string{redisServer},
		Cmd:        []string{"--bind", "*", "--protected-mode", "no", "--save", "", "--appendonly", "no"},
		Env:        []string{searchPath},
		WorkingDir: "/data",
		User:       NonRoot,
	}
}

// envoyProgram is where the official image has Envoy too, so that a pod's command
// does for both.
const envoyProgram = "/usr/local/bin/envoy"

// Envoy describes the image of the Envoy binary with the libraries that it loads.
func Envoy(tag, binary string, libraries []string) Spec {
	entries := append(Base(), Entry{Path: envoyProgram, Source: binary, Mode: 0o755})
	return Spec{
		Tag:        tag,
		Entries:    append(entries, libraryEntries(libraries)...),
		Entrypoint: []string{envoyProgram},
		Env:        []string{searchPath},
		WorkingDir: "/",
		User:       NonRoot,
	}
}

// libraryEntries gives the libraries the places that they have on this machine.
func libraryEntries(libraries []string) []Entry {
	entries := make([]Entry, 0, len(libraries))
	for _, library := range libraries {
		entries = append(entries, Entry{Path: library, Source: library, Mode: 0o755})
	}
	return entries
}

const (
	redisServer = "/usr/bin/redis-server"
	redisClient = "/usr/bin/redis-cli"
)

// RedisPrograms lists the programs whose libraries [Redis] needs.
func RedisPrograms() []string { return []string{redisServer, redisClient} }

// ParseExtra reads "SOURCE:PATH", a file of this machine and its place in the image.
func ParseExtra(text string) (Entry, error) {
	source, target, found := strings.Cut(text, ":")
	if !found || source == "" || !path.IsAbs(target) {
		return Entry{}, fmt.Errorf("extra file %q: want SOURCE:PATH with an absolute PATH", text)
	}
	return Entry{Path: path.Clean(target), Source: source}, nil
}
