// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Bounds of connections. Answers may take as long as the API server needs, see httpapi.
const (
	headerTimeout  = 5 * time.Second
	bodyTimeout    = 30 * time.Second
	answerTimeout  = time.Minute
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	// lastAnswers is how long requests under way may take when the console ends.
	lastAnswers = 2 * time.Second
)

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

// Serve answers until the context ends.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving the console: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return errors.Join(fmt.Errorf("ending the console: %w", err), server.Close())
	}
	return nil
}
