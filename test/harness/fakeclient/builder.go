// SPDX-License-Identifier: Apache-2.0

// Package fakeclient builds fake clients that keep no managedFields.
//
// By default the fake client of controller-runtime computes managedFields at each write. For that it
// lists all kinds of its scheme anew, which takes most of the time of a test. No test sees them,
// because the fake removes managedFields from its answers. A test of server-side apply needs the
// default.
package fakeclient

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// NewBuilder starts a fake client that knows the kinds of a scheme.
func NewBuilder(kinds *runtime.Scheme) *fake.ClientBuilder {
	tracker := testing.NewObjectTracker(kinds, serializer.NewCodecFactory(kinds).UniversalDecoder())
	return fake.NewClientBuilder().WithScheme(kinds).WithObjectTracker(tracker)
}
