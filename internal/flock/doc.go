// Package flock is an exclusive lock of a file that ends with its process: for what several
// test processes of one machine install or build once. It waits without a bound; a process
// that is killed leaves no lock behind.
package flock
