// SPDX-License-Identifier: Apache-2.0

// Package options holds the command lines of Plumbline's servers.
//
// Start with Parse: it reads a flag set from the arguments and, for every flag
// that was not given, from the environment variable PLUMBLINE_<FLAG> (upper
// case, dashes as underscores). Server holds what every server takes, Common what
// those with Redis take; Webhook is the admission webhook's, XDS the discovery
// server's. Validate answers with field errors whose path is the flag, so that a
// person sees which one to change.
package options
