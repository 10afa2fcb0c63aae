// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// targets answers dry runs: what is put is stored, unless put says otherwise.
type targets struct {
	live  string
	OnPut func(body []byte) ([]byte, error)
}

func (t targets) Get(_ context.Context, ref exec.Reference) ([]byte, error) {
	if t.live == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: ref.Group, Resource: "deployments"}, ref.Name)
	}
	return []byte(t.live), nil
}

func (targets) Patch(context.Context, exec.Reference, []byte) ([]byte, error) {
	return nil, errors.New("a preview patches no object")
}

func (t targets) Put(_ context.Context, _ exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	if !dryRun {
		return nil, errors.New("a preview must not write")
	}
	if t.OnPut != nil {
		return t.OnPut(body)
	}
	return body, nil
}

func (t targets) Post(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	return t.Put(ctx, ref, body, dryRun)
}
