// Package payload makes rows that prove themselves: a payload says which row of which stream
// it is, and the rest of its bytes follow from that, so that tests which break a deployment
// hold any row that they read, byte for byte, against what was sent.
package payload
