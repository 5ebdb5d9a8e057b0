"""What lies in an estate, as a stream from listings alone: no file is opened, and no list of files is kept."""
