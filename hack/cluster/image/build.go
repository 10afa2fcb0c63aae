// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Build makes the image for one architecture.
func Build(spec Spec) (v1.Image, error) {
	content, err := layerTar(spec.Entries)
	if err != nil {
		return nil, fmt.Errorf("building the layer of %s: %w", spec.Tag, err)
	}
	options := []tarball.LayerOption{tarball.WithCompression(compression.None)}
	if spec.Compressed {
		options = []tarball.LayerOption{tarball.WithCompression(compression.GZip), tarball.WithMediaType(types.OCILayer)}
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, options...)
	if err != nil {
		return nil, fmt.Errorf("building the layer of %s: %w", spec.Tag, err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", spec.Tag, err)
	}
	image, err = mutate.ConfigFile(image, configFile(spec, image))
	if err != nil {
		return nil, fmt.Errorf("configuring %s: %w", spec.Tag, err)
	}
	return image, nil
}

func configFile(spec Spec, image v1.Image) *v1.ConfigFile {
	config := &v1.ConfigFile{}
	if existing, err := image.ConfigFile(); err == nil { // in memory: cannot fail
		config = existing.DeepCopy()
	}
	config.Created = v1.Time{Time: time.Unix(0, 0)}
	if !spec.Created.IsZero() {
		config.Created = v1.Time{Time: spec.Created.UTC()}
	}
	config.OS, config.Architecture = "linux", cmp.Or(spec.Architecture, runtime.GOARCH)
	user := strconv.Itoa(spec.User)
	config.Config = v1.Config{
		User:       user + ":" + user,
		Entrypoint: spec.Entrypoint,
		Cmd:        spec.Cmd,
		Env:        spec.Env,
		WorkingDir: spec.WorkingDir,
		Labels:     spec.Labels,
	}
	return config
}

// WriteArchive builds the image and writes it as a docker-archive to the file
// out, atomically. It returns the digest of the image.
func WriteArchive(spec Spec, out string) (v1.Hash, error) {
	tag, err := name.NewTag(spec.Tag, name.StrictValidation)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("image tag %q: want a full name such as docker.io/plumbline/webhook:dev: %w", spec.Tag, err)
	}
	image, err := Build(spec)
	if err != nil {
		return v1.Hash{}, err
	}
	staging, err := os.CreateTemp(filepath.Dir(out), filepath.Base(out)+".*")
	if err != nil {
		return v1.Hash{}, fmt.Errorf("creating the archive: %w", err)
	}
	defer func() { _ = os.Remove(staging.Name()) }() // gone after the rename
	if err := tarball.Write(tag, image, staging); err != nil {
		return v1.Hash{}, fmt.Errorf("writing %s: %w", out, err)
	}
	if err := staging.Chmod(0o644); err != nil {
		return v1.Hash{}, fmt.Errorf("writing %s: %w", out, err)
	}
	if err := staging.Close(); err != nil {
		return v1.Hash{}, fmt.Errorf("writing %s: %w", out, err)
	}
	if err := os.Rename(staging.Name(), out); err != nil {
		return v1.Hash{}, fmt.Errorf("publishing %s: %w", out, err)
	}
	return image.Digest()
}
