"""The scorer: quality and judge on features of a picture, behind the HPSv3 scorer's contract."""
