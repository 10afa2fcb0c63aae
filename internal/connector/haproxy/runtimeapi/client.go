// SPDX-License-Identifier: Apache-2.0

package runtimeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Bounds of one command.
const (
	// patience is for a program that hangs.
	patience = 5 * time.Second
	// maxAnswer is that of 10,000 servers, in bytes.
	maxAnswer = 16 << 20
)

// Client of a socket. The zero PID is the process at the socket itself; with another one the socket is
// the master's, and the worker with the PID is asked.
type Client struct {
	Socket string
	PID    int
}

// ProgramError is a refusal in the program's own words.
type ProgramError struct{ Command, Said string }

func (e *ProgramError) Error() string {
	return fmt.Sprintf("HAProxy refuses %.100q: %s", e.Command, e.Said)
}

// GoneError says that the master has no worker with the PID any more.
type GoneError struct{ PID int }

func (e *GoneError) Error() string { return fmt.Sprintf("HAProxy has no worker %d any more", e.PID) }

// Do sends one command and returns its answer without empty lines around. It returns an error if a
// word of the command would end the word or the command.
func (c Client) Do(ctx context.Context, words ...string) (string, error) {
	for _, w := range words {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool { return r <= ' ' || r == ';' || r == '\\' || r == '<' || r == 0x7f }) {
			return "", fmt.Errorf("asking HAProxy: %.100q is no word of a command", w)
		}
	}
	command := strings.Join(words, " ")
	said, err := c.ask(ctx, command)
	if err != nil {
		return "", fmt.Errorf("asking HAProxy for %.100q: %w", command, err)
	}
	said = strings.Trim(said, "\n")
	switch {
	case strings.HasPrefix(said, "Can't find the target PID"):
		return "", &GoneError{c.PID}
	case strings.HasPrefix(said, "Unknown command"), strings.HasPrefix(said, "Permission denied"):
		return "", &ProgramError{command, firstLine(said)}
	}
	return said, nil
}

// Say is Do for a command whose answer is empty when it was carried out.
func (c Client) Say(ctx context.Context, words ...string) error {
	said, err := c.Do(ctx, words...)
	if err == nil && said != "" {
		err = &ProgramError{strings.Join(words, " "), firstLine(said)}
	}
	return err
}

func firstLine(said string) string {
	line, _, _ := strings.Cut(said, "\n")
	return line
}

func (c Client) ask(ctx context.Context, command string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", c.Socket)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	deadline, _ := ctx.Deadline() // it has one
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if c.PID != 0 {
		command = fmt.Sprintf("@!%d %s", c.PID, command)
	}
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return "", err
	}
	// The master keeps a connection whose other side may have another command.
	if half, is := conn.(*net.UnixConn); is {
		if err := half.CloseWrite(); err != nil {
			return "", err
		}
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer+1))
	if len(answer) > maxAnswer {
		return "", fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return string(answer), err
}
