// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Push uploads the image in a docker-archive to registry, which is a host with an
// optional path, and returns the reference it has there. Credentials are those
// that "docker login" or a credential helper has stored.
func Push(ctx context.Context, archive, registry string, plainHTTP bool) (name.Reference, error) {
	tag, image, err := Open(archive)
	if err != nil {
		return nil, err
	}
	options := []name.Option{name.StrictValidation}
	if plainHTTP {
		options = append(options, name.Insecure)
	}
	target, err := name.NewTag(Relocate(tag.Name(), registry), options...)
	if err != nil {
		return nil, fmt.Errorf("naming %s in %s: %w", tag, registry, err)
	}
	if err := remote.Write(target, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return nil, fmt.Errorf("pushing %s: %w", target, err)
	}
	return target, nil
}

// Open reads a docker-archive that holds one image with one tag.
func Open(archive string) (name.Tag, v1.Image, error) {
	manifest, err := tarball.LoadManifest(fileOpener(archive))
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("reading image archive %s: %w", archive, err)
	}
	if len(manifest) != 1 || len(manifest[0].RepoTags) != 1 {
		return name.Tag{}, nil, fmt.Errorf("image archive %s: want exactly one image with one tag", archive)
	}
	tag, err := name.NewTag(manifest[0].RepoTags[0])
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("image archive %s: %w", archive, err)
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("reading image archive %s: %w", archive, err)
	}
	return tag, image, nil
}

// Relocate replaces the registry of a full image name, and keeps the rest:
// "index.docker.io/plumbline/webhook:dev" moved to "ghcr.io/me" is
// "ghcr.io/me/plumbline/webhook:dev".
func Relocate(image, registry string) string {
	_, rest, _ := strings.Cut(image, "/")
	return strings.TrimSuffix(registry, "/") + "/" + rest
}

func fileOpener(path string) tarball.Opener {
	return func() (io.ReadCloser, error) { return os.Open(path) }
}
