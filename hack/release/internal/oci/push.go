// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Registry is where a release goes.
type Registry struct {
	Address   string // host with an optional path; the names of images are appended
	PlainHTTP bool   // the registry has no TLS
}

// Reference is the full name of an image there.
func (r Registry) Reference(image, tag string) (name.Tag, error) {
	if strings.Contains(r.Address, "://") {
		return name.Tag{}, fmt.Errorf("naming %s in the registry %q: want a host with a path and no scheme, such as ghcr.io/me/plumbline", image, r.Address)
	}
	options := []name.Option{name.StrictValidation}
	if r.PlainHTTP {
		options = append(options, name.Insecure)
	}
	reference, err := name.NewTag(strings.TrimSuffix(r.Address, "/")+"/"+image+":"+tag, options...)
	if err != nil {
		return name.Tag{}, fmt.Errorf("naming %s in the registry %q: want a host with a path, such as ghcr.io/me/plumbline: %w", image, r.Address, err)
	}
	return reference, nil
}

// TakenError refuses to change a tag that was published.
type TakenError struct {
	Reference string
	There     string
	Ours      string
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("pushing %s: it is there already with the digest %s, and this one is %s: a release is never changed; choose another VERSION", e.Reference, e.There, e.Ours)
}

// Check asks, before anything is pushed, whether the tag is free or holds this very
// digest, and whether the stored credentials are enough. The error is a *[TakenError]
// where the tag holds another image.
func Check(ctx context.Context, reference name.Tag, digest string) error {
	there, err := remote.Head(reference, options(ctx)...)
	switch {
	case err == nil && there.Digest.String() != digest:
		return &TakenError{Reference: reference.String(), There: there.Digest.String(), Ours: digest}
	case err != nil && !isMissing(err):
		return fmt.Errorf("asking for %s: %w: is REGISTRY right, are you logged in, does it need PLAIN_HTTP=1?", reference, err)
	}
	if err := remote.CheckPushPermission(reference, authn.DefaultKeychain, remote.DefaultTransport); err != nil {
		return fmt.Errorf("asking to push %s: %w: log in with `docker login` or `helm registry login`", reference, err)
	}
	return nil
}

// Push uploads an index under its tag.
func Push(ctx context.Context, reference name.Tag, index v1.ImageIndex) error {
	if err := remote.WriteIndex(reference, index, options(ctx)...); err != nil {
		return fmt.Errorf("pushing %s: %w: call `make release` again, which goes on where this push ended", reference, err)
	}
	return nil
}

// Digest asks a registry for the digest of a tag.
func Digest(ctx context.Context, reference name.Tag) (string, error) {
	descriptor, err := remote.Head(reference, options(ctx)...)
	if err != nil {
		return "", fmt.Errorf("asking for the digest of %s: %w", reference, err)
	}
	return descriptor.Digest.String(), nil
}

func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// isMissing: some registries answer 401 or 403 for a repository that does not exist yet;
// whether a push is permitted is asked next.
func isMissing(err error) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && (answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
}

// HasLayer reports whether the tag exists and its only layer is this one, as that of a
// chart is. The error is a *[TakenError] where the tag holds another one.
func HasLayer(ctx context.Context, reference name.Tag, digest string) (bool, error) {
	artifact, err := remote.Image(reference, options(ctx)...)
	switch {
	case err != nil && isMissing(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking for %s: %w", reference, err)
	}
	manifest, err := artifact.Manifest()
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", reference, err)
	}
	if len(manifest.Layers) != 1 || manifest.Layers[0].Digest.String() != digest {
		there := "another content"
		if len(manifest.Layers) == 1 {
			there = manifest.Layers[0].Digest.String()
		}
		return false, &TakenError{Reference: reference.String(), There: there, Ours: digest}
	}
	return true, nil
}
