// Package guest is what runs inside vmtest's machine: it sets the machine up,
// runs the test programs of a plan and reports what they do.
//
// Process 1 does nothing but start the same program again and reap: a test
// whose children outlive it leaves them to process 1, and some tests look
// whether such a process is gone. The second process does the work. Whatever
// ends it, process 1 switches the machine off, and the host sees from the
// report how far it came.
package guest
