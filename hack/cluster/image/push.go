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

// Destination is where images are pushed to.
type Destination struct {
	Registry  string // host with an optional path
	PlainHTTP bool   // the registry has no TLS; local and private addresses are tried without it anyway
	// TagSuffix is appended to each tag. Where it follows from the content, a node
	// that holds an older image under the plain tag does not go on running that one.
	TagSuffix string
}

// named is the tag that the image of a full name gets there.
func (d Destination) named(image string) (name.Tag, error) {
	options := []name.Option{name.StrictValidation}
	if d.PlainHTTP {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(Relocate(image, d.Registry)+d.TagSuffix, options...)
	if err != nil {
		return name.Tag{}, fmt.Errorf("naming %s in %s: %w", image, d.Registry, err)
	}
	return tag, nil
}

// Push uploads the image in a docker-archive and returns the reference it has at
// the destination. Credentials are those that "docker login" or a credential
// helper has stored.
func Push(ctx context.Context, archive string, to Destination) (name.Reference, error) {
	tag, image, err := Open(archive)
	if err != nil {
		return nil, err
	}
	target, err := to.named(tag.Name())
	if err != nil {
		return nil, err
	}
	if err := remote.Write(target, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return nil, fmt.Errorf("pushing %s: %w", target, err)
	}
	return target, nil
}

// CheckPush begins the upload of an image of that full name and gives it up
// again, which shows that the registry answers and that the stored credentials
// are enough, before anything is built.
func CheckPush(image string, to Destination) error {
	target, err := to.named(image)
	if err != nil {
		return err
	}
	if err := remote.CheckPushPermission(target, authn.DefaultKeychain, remote.DefaultTransport); err != nil {
		return fmt.Errorf("asking to push %s: %w", target, err)
	}
	return nil
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
