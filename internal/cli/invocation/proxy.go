// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"context"

	"k8s.io/client-go/rest"
)

// healthPort is where an executor serves its records, if it does.
const healthPort = "8081"

// Proxy reaches a pod's port by way of the API server.
type Proxy func(ctx context.Context, namespace, pod, path string, query map[string]string) ([]byte, error)

func newProxy(raw rest.Interface) Proxy {
	return func(ctx context.Context, namespace, pod, path string, query map[string]string) ([]byte, error) {
		request := raw.Get().AbsPath("api/v1/namespaces", namespace, "pods", pod+":"+healthPort, "proxy").Suffix(path)
		for name, value := range query {
			request = request.Param(name, value)
		}
		result := request.Do(ctx)
		if err := result.Error(); err != nil { // with the server's own words, unlike Raw's
			return nil, err
		}
		return result.Raw()
	}
}
