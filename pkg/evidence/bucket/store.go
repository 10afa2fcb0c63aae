// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"sync/atomic"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/volume"
)

// Store is a bucket, or the part of one below a prefix.
type Store struct {
	bucket *blob.Bucket
	// conditional is set once the server has refused to create a name that is taken.
	conditional atomic.Bool
}

var _ evidence.OwnedStore = (*Store)(nil)

// probe is an object that Ready writes. It is no record and is not listed.
const probe = "probe"

// Content types of DSSE envelopes in JSON, and of bodies.
const (
	contentType     = "application/vnd.dsse.envelope.v1+json"
	contentTypeBody = "application/json"
)

// Open the store of a URL: file or s3; see the package's manual. It does not
// connect; Ready does.
func Open(ctx context.Context, address string) (evidence.OwnedStore, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("opening evidence store: %w", err)
	}
	switch u.Scheme {
	case "file":
		return openVolume(u)
	case "s3":
		b, err := buckets().OpenBucket(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("opening evidence store: %w", err)
		}
		return &Store{bucket: b}, nil
	default:
		return nil, fmt.Errorf("opening evidence store: scheme %q of %q is neither file nor s3", u.Scheme, u.Redacted())
	}
}

func openVolume(u *url.URL) (evidence.OwnedStore, error) {
	if u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Path == "" {
		return nil, fmt.Errorf("opening evidence store: %q is not of the form file:///path", u.Redacted())
	}
	s, err := volume.Open(u.Path)
	if err != nil {
		return nil, fmt.Errorf("opening evidence store: %w", err)
	}
	return s, nil
}

// Close lets go of the bucket. A call to a server ends with its context, so that no call is
// waited for.
func (s *Store) Close(context.Context) error {
	if err := s.bucket.Close(); err != nil {
		return fmt.Errorf("closing evidence store: %w", err)
	}
	return nil
}

// Create a record; see [evidence.Store]. The first one waits for the proof that
// the server would refuse a second. Each one is read again.
func (s *Store) Create(ctx context.Context, name string, data []byte) error {
	if !s.conditional.Load() {
		if err := s.Ready(ctx); err != nil {
			return err
		}
	}
	err := s.write(ctx, name, data, true)
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return fmt.Errorf("%s: %w", name, evidence.ErrExists)
	}
	if err != nil {
		return failure("create", name, err)
	}
	return s.confirm(ctx, "create", name, data)
}

// confirm reads what was written. A proxy may answer with success in the place of the
// server, which then never saw the request. Of an overlong object the beginning is compared.
func (s *Store) confirm(ctx context.Context, op, name string, data []byte) error {
	there, err := s.Read(ctx, name)
	switch {
	case errors.Is(err, evidence.ErrNotFound):
		err = errors.New("the server answered that it has stored the object, and does not have it")
	case err != nil:
		return err
	case !bytes.Equal(there, data[:min(len(data), evidence.MaxSize(name)+1)]):
		err = errors.New("the server answered that it has stored the object, and reads another one")
	default:
		return nil
	}
	return &evidence.StoreError{Op: op, Name: name, Reason: evidence.StoreFailed, Err: err}
}

func (s *Store) write(ctx context.Context, name string, data []byte, ifFree bool) error {
	options := &blob.WriterOptions{ContentType: contentType, IfNotExist: ifFree}
	if _, _, isBody := evidence.ParseBodyName(name); isBody {
		options.ContentType = contentTypeBody
	}
	return s.bucket.WriteAll(ctx, name, data, options)
}

// Read a record; see [evidence.Store].
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	r, err := s.bucket.NewReader(ctx, name, nil)
	if gcerrors.Code(err) == gcerrors.NotFound && !noBucket(err) {
		return nil, fmt.Errorf("%s: %w", name, evidence.ErrNotFound)
	}
	if err != nil {
		return nil, failure("read", name, err)
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(evidence.MaxSize(name))+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, failure("read", name, err)
	}
	return data, nil
}

// List names; see [evidence.Store].
func (s *Store) List(ctx context.Context, chain string) iter.Seq2[string, error] {
	prefix := ""
	if chain != "" {
		prefix = chain + "/"
	}
	return func(yield func(string, error) bool) {
		objects := s.bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			object, err := objects.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", failure("list", chain, err))
				return
			}
			if object.Key != probe && !yield(object.Key, nil) {
				return
			}
		}
	}
}

// Ready writes a probe of one byte, since a bucket may keep all versions, and reads it. Until
// that has been seen once, Ready then asks for the probe to be created anew, which must be
// refused.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.write(ctx, probe, []byte{0}, false); err != nil {
		return failure("probe", probe, err)
	}
	if err := s.confirm(ctx, "probe", probe, []byte{0}); err != nil {
		return err
	}
	if s.conditional.Load() {
		return nil
	}
	err := s.write(ctx, probe, nil, true)
	switch {
	case gcerrors.Code(err) == gcerrors.FailedPrecondition:
		s.conditional.Store(true)
		return nil
	case err != nil:
		return failure("probe", probe, err)
	default:
		return &evidence.StoreError{
			Op: "probe", Name: probe, Reason: evidence.StoreUnsupported,
			Err: errors.New("the server created an object that was there: it ignores If-None-Match, and would let one writer replace the record of another"),
		}
	}
}
