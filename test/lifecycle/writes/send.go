// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

var (
	errStatus = errors.New("status")
	errAnswer = errors.New("the answer does not hold what was written")
)

// send makes a call and reads its answer. unstamped says that the object came
// back without the stamp of its content.
func (d *Driver) send(ctx context.Context, c call) (unstamped bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, c.method, d.host+c.path, strings.NewReader(c.body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", c.contentType)
	request.Header.Set("Accept", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }() // only read
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return false, err
	case response.StatusCode < 200 || response.StatusCode > 299:
		return false, fmt.Errorf("%w %d: %.300s", errStatus, response.StatusCode, body)
	}
	return c.judge(body)
}

// judge looks for what was written in the answer to it.
func (c call) judge(body []byte) (unstamped bool, err error) {
	switch c.verb {
	case Delete: // answered with a Status
		return false, nil
	case Scale:
		var scale struct{ Spec struct{ Replicas int32 } }
		if err := json.Unmarshal(body, &scale); err != nil {
			return false, fmt.Errorf("decoding a Scale: %w", err)
		}
		if scale.Spec.Replicas != c.want.Replicas {
			return false, fmt.Errorf("%w: %d replicas, want %d", errAnswer, scale.Spec.Replicas, c.want.Replicas)
		}
		return false, nil // a Scale carries no stamp
	case Create, Image, Env:
	}
	seen, err := Observe(body)
	if err != nil {
		return false, err
	}
	if seen.Stored != c.want {
		return false, fmt.Errorf("%w: %+v, want %+v", errAnswer, seen.Stored, c.want)
	}
	return seen.Stamp != seen.Hash, nil
}
