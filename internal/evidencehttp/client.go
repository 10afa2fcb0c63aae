// SPDX-License-Identifier: Apache-2.0

package evidencehttp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// errReadOnly: records are written by the executor alone.
var errReadOnly = errors.New("records cannot be written from here")

// Get fetches a path below the executor's own, with a query.
type Get func(ctx context.Context, path string, query map[string]string) ([]byte, error)

// Client is the store of an executor that serves it.
type Client struct{ Get Get }

// Create implements evidence.Store; it always fails.
func (c Client) Create(_ context.Context, name string, _ []byte) error {
	return &evidence.StoreError{Op: "create", Name: name, Reason: evidence.StoreReadOnly, Err: errReadOnly}
}

// Ready implements evidence.Store; it always fails.
func (c Client) Ready(context.Context) error {
	return &evidence.StoreError{Op: "probe", Reason: evidence.StoreReadOnly, Err: errReadOnly}
}

// Read implements evidence.Store.
func (c Client) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := c.Get(ctx, Prefix+name, nil)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading evidence %s: %w", name, evidence.ErrNotFound)
	case err != nil:
		return nil, failed("read", name, err)
	case len(data) > evidence.MaxSize(name)+1:
		return data[:evidence.MaxSize(name)+1], nil
	}
	return data, nil
}

// List implements evidence.Store.
func (c Client) List(ctx context.Context, chain string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		query := map[string]string{}
		if chain != "" {
			query["chain"] = chain
		}
		data, err := c.Get(ctx, Prefix, query)
		if err != nil {
			yield("", failed("list", chain, err))
			return
		}
		for name := range strings.Lines(string(data)) {
			if !yield(strings.TrimSuffix(name, "\n"), nil) {
				return
			}
		}
	}
}

func failed(op, name string, err error) error {
	return &evidence.StoreError{Op: op, Name: name, Reason: evidence.StoreUnreachable, Err: err}
}
