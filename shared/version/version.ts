/** The version of every part; parts of different versions refuse each other (see the wire). */
export const VERSION = "0.1.0";
