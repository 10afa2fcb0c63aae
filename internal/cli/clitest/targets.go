// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// Targets answers dry runs: the API server would store the body of a write, unless OnPut answers.
type Targets struct {
	Live  string
	OnPut func(body []byte) ([]byte, error)
}

// Get returns the live object.
func (t Targets) Get(_ context.Context, ref exec.Reference) ([]byte, error) {
	if t.Live == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: ref.Group, Resource: "deployments"}, ref.Name)
	}
	return []byte(t.Live), nil
}

// Patch fails: a preview patches no object.
func (Targets) Patch(context.Context, exec.Reference, []byte) ([]byte, error) {
	return nil, errors.New("a preview patches no object")
}

// Put answers the dry run of an update, and fails on a write.
func (t Targets) Put(_ context.Context, _ exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	if !dryRun {
		return nil, errors.New("a preview must not write")
	}
	if t.OnPut != nil {
		return t.OnPut(body)
	}
	return body, nil
}

// Post answers the dry run of a creation, and fails on a write.
func (t Targets) Post(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	return t.Put(ctx, ref, body, dryRun)
}
