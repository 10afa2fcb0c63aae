// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// LastAnswers is how long requests under way may take when the console ends.
const LastAnswers = 2 * time.Second

// Listen takes a port of 127.0.0.1; 0 takes any that is free. No other interface can be chosen,
// since a caller acts as the user of the kubeconfig.
func Listen(ctx context.Context, port int) (net.Listener, *Door, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, nil, fmt.Errorf("listening on 127.0.0.1: %w", err)
	}
	door, err := NewDoor(listener.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // a listener of tcp4 has no other address
	if err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	return listener, door, nil
}
