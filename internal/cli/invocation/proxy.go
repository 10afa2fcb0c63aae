// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/portforward"
)

// newProxy returns a proxy that sends its requests by way of the API server.
func newProxy(raw rest.Interface) records.Proxy {
	return func(ctx context.Context, target portforward.Target, path string, query map[string]string) ([]byte, error) {
		request := raw.Get().AbsPath("api/v1/namespaces", target.Namespace, "pods", fmt.Sprintf("%s:%d", target.Pod, target.Port), "proxy").Suffix(path)
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
